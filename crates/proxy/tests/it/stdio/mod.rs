//! A stdio server behind the proxy.

mod client;
mod fake;
mod hostile;
mod life;
mod messages;
mod routing;
