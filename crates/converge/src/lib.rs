//! Makes live objects what they should be.
//!
//! A controller says which objects it wants as [`Child`] values. [`Observed`] says, from nothing but a live object,
//! what a field manager owns in it. When the two are equal there is nothing to do and nothing is sent; when they
//! differ in any way, one server-side apply puts it right. So no field is ever compared by name, no field of others
//! is ever read or written, and a new field needs no code here.
//!
//! This crate knows Kubernetes and nothing of what the objects are for.

mod canonical;
mod changes;
mod child;
mod client;
mod digest;
mod documents;
mod error;
mod fields;
mod kind;
mod metadata;
mod observed;
mod owned;
mod plan;
mod prune;
mod random;
mod reclaim;
mod request;
mod takeover;

pub use changes::Change;
pub use child::Child;
pub use client::{Applied, Writer};
pub use digest::Digest;
pub use documents::documents_digest;
pub use error::{Error, Result, said};
pub use kind::Kind;
pub use metadata::{Finalizer, annotate};
pub use observed::{Meta, Observed, Owner};
pub use plan::{Planned, Write};
pub use prune::prune;
pub use request::Mode;
