//! Converges live objects to their desired state.
//!
//! A controller describes the desired objects as [`Child`] values. [`Observed`] derives, from the live object alone,
//! what a field manager owns in it. When the two are equal, nothing is sent; when they differ, one server-side apply
//! corrects it. So no field is ever compared by name, no field of others is ever read or written, and a new field
//! needs no code here.
//!
//! This crate depends on Kubernetes alone, not on the purpose of the objects.

mod canonical;
mod changes;
mod child;
mod client;
mod digest;
mod documents;
mod error;
mod fields;
mod guard;
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
pub use error::{Error, Result, error_chain};
pub use guard::{Contention, Restores};
pub use kind::Kind;
pub use metadata::{Finalizer, annotate, annotate_pods};
pub use observed::{Meta, Observed, Owner};
pub use plan::{Planned, Write};
pub use prune::prune;
pub use request::Mode;
