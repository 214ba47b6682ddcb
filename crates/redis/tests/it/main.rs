//! The connection to real servers.

mod connection;
mod places;
