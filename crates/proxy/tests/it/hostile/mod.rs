//! What a stranger can send, row by row: what they are answered, and what the server sees of it. docs/security.md is the
//! table of these tables.

mod answers;
mod headers;
mod judged;
mod messages;
mod paths;
mod raw;
mod restored;
mod sessions;
mod tokens;
mod wire;
