//! Objects from their creation to their end.

mod findings;
mod mistakes;
mod remote_proxy;
mod server;
mod without_pods;
