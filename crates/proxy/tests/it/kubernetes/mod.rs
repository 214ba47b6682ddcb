//! The server of a proxy, on a real API server. There are no pods: a fake of the kubelet reports their status.

mod attach;
mod compat;
mod fixture;
mod generation;
mod manifest;
mod others;
mod platform;
mod race;
mod report;
mod rollout;
