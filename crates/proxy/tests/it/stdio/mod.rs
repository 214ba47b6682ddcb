//! A stdio server behind the proxy.

mod client;
mod everything;
mod fake;
mod hostile;
mod http_sse;
mod life;
mod messages;
mod routing;
