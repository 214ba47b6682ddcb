//! Hostile input: the response to it, and what the server receives of it. docs/security.md lists these tests.

mod answers;
mod credentials;
mod headers;
mod judged;
mod messages;
mod paths;
pub(crate) mod raw;
mod restored;
mod sessions;
mod tokens;
mod wire;
