//! One request with its message, and the messages of its response.

mod exchange;
mod filter;
mod metrics;
mod parsed;
mod read;

pub use exchange::{Caller, Exchange, Origin, Part, SignRequest};
pub use filter::{Filters, ListFilters, MessageFilter, filter};
pub use metrics::{Checked, Decision, RateLimited, RequestMetrics, Scope};
pub use parsed::ParsedMessage;
pub use read::{discard, read};
pub use skep_authz::Hints as ToolHints;
