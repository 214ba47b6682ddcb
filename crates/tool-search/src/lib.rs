//! A search among the tools of MCP servers.
//!
//! It is made of two. Words find tools whose texts have them ([`Index`]), and vectors find those that mean the same in other
//! words ([`Semantic`]), where there is a model that makes vectors: a [`StaticModel`], or a service elsewhere. Nothing here
//! knows MCP's messages, and only [`StaticModel::open`] does I/O.

mod fallback;
mod index;
mod lexical;
mod model;
mod semantic;
mod stop_words;
mod tool;
mod vectors;
mod words;

pub use index::{Hit, Index, Query};
pub use model::{ModelError, StaticModel};
pub use semantic::Semantic;
pub use tool::Tool;
pub use vectors::{ToolVectors, normalized};
pub use words::terms;
