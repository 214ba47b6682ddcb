//! Who calls.

mod owner;

pub use owner::Owner;
pub use skep_auth::Identity;
