//! The API as the API server enforces it.

mod admission;
mod compat;
mod constraints;
mod crds;
mod specimens;
