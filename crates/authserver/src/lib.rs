//! An OAuth authorization server for the clients of one program, which logs users in at identity providers.
//!
//! To its clients it is an authorization server: they register, send users here, and get tokens. To the identity providers
//! ("upstreams") it is a client: it sends users on to them, and keeps their tokens, so that the program can act for a user
//! at the services behind it ([`UpstreamTokens`]).
//!
//! A request is for one of the [`endpoints`]; the token endpoint has one file for each of the [`grants`]. What the protocol
//! demands is in [`rules`]: each rule is one function without effects, with the section that has it. What may be used once
//! is taken from the [`store`] by one operation.
//!
//! No token, code or secret is in an error or a log. Every wait, map and body has a bound in [`limits`].

mod administration;
mod browser;
mod clients;
mod clock;
mod config;
mod endpoints;
mod error;
mod events;
mod grants;
mod keys;
mod limits;
mod random;
mod rates;
mod response;
mod rules;
mod server;
mod store;
mod upstreams;
mod users;

#[cfg(test)]
mod tests;

pub use administration::{
    Account, ClientPage, ClientSummary, EndedPage, SessionFilter, SessionPage, SessionSummary,
};
pub use events::{Event, EventKind, EventOutcome, Observer};
pub use server::AuthServer;
pub use store::StoreError;
pub use upstreams::{SessionError, UpstreamTokenError, UpstreamTokens};
pub use users::{UserConnection, UserConnections};
