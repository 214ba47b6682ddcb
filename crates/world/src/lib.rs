//! The cluster as controllers see it: one watch per kind, shared by all, and reads that remember who read.
//!
//! A controller looks objects up through a [`Reader`]. The look-up itself is what subscribes it: when that object
//! changes, comes or goes, the reader is woken, and nobody else. So what is read and not watched cannot be written,
//! an absent object can be waited for, and "who refers to me" is a look-up in an index.
//!
//! Only what controllers need of an object is kept ([`Watched::keep`]), so that thousands fit in a small pod.

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
pub use watched::{Readable, Watched};
pub use world::{Builder, Change, Target, World};
