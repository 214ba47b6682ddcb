//! One request with its message, and the messages of its response.

mod call;
mod exchange;
mod filter;
mod metrics;
mod read;

pub use call::Call;
pub use exchange::Exchange;
pub use filter::{Filters, MessageFilter, filtered};
pub use metrics::{Checked, Decision, RateLimited, RequestMetrics, Scope};
pub use read::read;
