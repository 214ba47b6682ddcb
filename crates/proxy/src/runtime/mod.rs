//! Where a server runs that is the proxy's own.

pub mod kubernetes;
