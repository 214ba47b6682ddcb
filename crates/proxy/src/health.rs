//! `/health`: the response to the kubelet's probes.
//!
//! One path serves all probes. Until the server has been available the proxy is not ready, so that a rollout waits for it;
//! the response waits a moment too, so that a probe succeeds at once instead of a second later. The first proxy of a new
//! server is ready before it: no other proxy could serve, and clients wait in it for the server. Once the server has been
//! available, or when it takes so long that a restart would be next, the proxy reports that it is alive, as restarting it
//! would not help; the body then has the problem of the server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use http::{Method, Response, StatusCode};
use serde_json::json;
use skep_gateway::http::{Body, response};

use crate::limits;

/// Whether a server is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It is available.
    Up,
    /// It is not, with the reason.
    Down(&'static str),
    /// It is not checked: it is remote.
    Unchecked,
}

/// The state from one probe to the next.
pub(crate) struct Health {
    began: Instant,
    /// Whether the server has been available.
    started: AtomicBool,
    /// Whether there is no other proxy in front of an older server.
    is_first: Arc<AtomicBool>,
}

impl Health {
    /// The health of a proxy which may turn out to be the first of its server.
    pub(crate) fn new(is_first: Arc<AtomicBool>) -> Self {
        Self { began: Instant::now(), started: AtomicBool::new(false), is_first }
    }

    /// Whether the proxy is not ready because its server is in this condition.
    pub(crate) fn waits(&self, condition: Availability) -> bool {
        matches!(condition, Availability::Down(_))
            && self.is_starting()
            && !self.is_first.load(Ordering::Relaxed)
    }

    /// Whether a server that is not available is starting.
    fn is_starting(&self) -> bool {
        !self.started.load(Ordering::Relaxed) && self.began.elapsed() < limits::START_TIME
    }

    pub(crate) fn respond(
        &self,
        method: &Method,
        transport: &str,
        condition: Availability,
    ) -> Response<Body> {
        if method != Method::GET {
            return response::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let now = jiff::Timestamp::now().to_string();
        let mut health = json!({"status": "healthy", "timestamp": now, "transport": transport});
        let mut status = StatusCode::OK;
        match condition {
            Availability::Unchecked => {}
            Availability::Up => {
                self.started.store(true, Ordering::Relaxed);
                health["mcp"] = json!({"available": true, "last_checked": now});
            }
            Availability::Down(reason) => {
                if self.waits(condition) {
                    status = StatusCode::SERVICE_UNAVAILABLE;
                }
                health["status"] = if self.is_starting() { "starting" } else { "degraded" }.into();
                health["mcp"] = json!({"available": false, "error": reason, "last_checked": now});
            }
        }
        response::json(status, health.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn status(health: &Health, condition: Availability) -> u16 {
        health.respond(&Method::GET, "sse", condition).status().as_u16()
    }

    #[test]
    fn a_proxy_is_ready_when_its_server_has_been_available_or_takes_too_long() {
        let health = Health::new(Arc::default());
        assert_eq!(status(&health, Availability::Down("it starts")), 503);
        health.is_first.store(true, Ordering::Relaxed);
        assert_eq!(status(&health, Availability::Down("it starts")), 200, "no other proxy could serve");
        health.is_first.store(false, Ordering::Relaxed);
        assert_eq!(status(&health, Availability::Up), 200);
        assert_eq!(status(&health, Availability::Down("it has ended")), 200);
        let long_ago = Instant::now().checked_sub(limits::START_TIME + Duration::from_secs(1)).unwrap();
        let slow = Health { began: long_ago, ..Health::new(Arc::default()) };
        assert_eq!(status(&slow, Availability::Down("its image is large")), 200);
        assert_eq!(status(&Health::new(Arc::default()), Availability::Unchecked), 200);
    }
}
