//! Reading bodies, within limits: one for each body, and a budget for all of them.

mod budget;
mod counted;
mod read;

pub use budget::{Budget, Exhausted, Share};
pub use counted::CountedBytes;
pub use read::{ReadError, discard, read, read_counted, read_counted_of};
