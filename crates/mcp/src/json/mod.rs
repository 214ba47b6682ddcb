//! JSON as it was received: a scanner that checks every byte and builds nothing, and the slices it hands out.

mod distinct;
mod fields;
mod object;
mod raw;
mod scan;
mod shallow;
mod text;
mod tree;

pub use object::Object;
pub use raw::{Kind, Raw};
pub use text::Text;
pub use tree::tree_size;

pub(crate) use fields::{Field, Fields};
pub(crate) use scan::Scanner;
pub(crate) use shallow::MEMBERS;
