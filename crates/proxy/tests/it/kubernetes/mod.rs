//! The server of a proxy, on a real API server. There are no pods: what a kubelet would report is reported for it.

mod attach;
mod compat;
mod fixture;
mod generation;
mod manifest;
mod others;
mod platform;
mod race;
mod rollout;
