//! A stdio server behind the proxy.

pub(crate) mod client;
pub(crate) mod everything;
pub(crate) mod fake;
mod hostile;
mod http_sse;
mod life;
mod messages;
mod routing;
