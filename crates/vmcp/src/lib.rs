//! The virtual MCP server: many servers behind one address.
//!
//! A client has one session here, and through it one at each backend that it uses, which is opened when it is first
//! needed ([`session`]). What the client sees is a [`catalog`]: the lists of all backends, joined under unique names. It is
//! computed once for each set of lists, and shared by all sessions that see the same ([`views`]). Each [`backend`] is
//! looked after by a task of its own, which reads its lists and checks its health, so that a slow or dead one delays no
//! other.
//!
//! A request passes through the middlewares of `skep-gateway`, as in the proxy, and then to [`front`]: its method decides
//! whether it is answered here, from the catalog, or by a backend. Payloads are forwarded byte for byte, but for names and
//! ids. Where there are too many tools for a model, it can [`search`] for them.

mod admission;
mod backend;
mod catalog;
mod cluster;
mod config;
mod discovery;
mod front;
mod level;
mod limits;
mod report;
mod scripts;
mod search;
mod session;
mod views;

pub use cluster::Cluster;
pub use config::{Destination, Explained, Listen, Offer, Settings};
pub use discovery::backends_of_group;
pub use front::VirtualServer;
pub use skep_gateway::{
    AdministrationPage, AuthorizationServer, ConfigError, ConnectionSource, Connections, ProviderTokenError,
    Workers,
    endpoint::Extras,
    http::serve,
    middleware::{CallLog, Caller, CallsPage, Explanation, Outcome},
};
