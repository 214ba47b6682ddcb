//! Who calls.

pub(crate) use skep_auth::Identity;
