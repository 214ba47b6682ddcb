//! The cluster as controllers see it: one shared watch per kind, and reads that subscribe the reader.
//!
//! A controller looks objects up through a [`Reader`]. The look-up itself subscribes it: when that object is created,
//! changed or deleted, that reader alone is requeued. So code cannot read an object without watching it, an absent
//! object can be waited for, and "who refers to me" is an index look-up.
//!
//! Only what controllers need of an object is cached ([`Watched::project`]), so that thousands fit in a small pod.

mod content;
mod dependencies;
mod queue;
mod reader;
mod store;
mod watch;
mod watched;
mod world;

pub use content::ReadError;
pub use queue::{Job, Queue};
pub use reader::Reader;
pub use store::Entry;
pub use watched::{Content, Watched};
pub use world::{Builder, Change, Target, World};
