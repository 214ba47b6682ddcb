//! Objects from their creation to their deletion.

mod findings;
mod mistakes;
mod remote_proxy;
mod reported;
mod rows;
mod server;
mod server_mistakes;
mod virtual_mistakes;
mod without_pods;
