//! Who calls.

mod holder;
mod owner;

pub use holder::Holder;
pub use owner::Owner;
pub use skep_auth::Identity;
