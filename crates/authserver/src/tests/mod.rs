//! Tests of the server as clients, browsers and attackers see it. The identity provider is a fake of the test kit.

mod administration;
mod approvals;
mod chains;
mod codes;
mod configuration;
mod connections;
mod delegation;
mod documents;
mod events;
mod faults;
mod findings;
mod floods;
mod flow;
mod interleavings;
mod logins;
mod lost_replies;
mod policies;
mod redis_failover;
mod redis_places;
mod refreshes;
mod registration;
mod stores;
mod upstream_tokens;
mod user_connections;
mod user_sessions;
mod world;

pub(crate) use stores::pending;
