//! `/health`: what the kubelet is told.
//!
//! One path serves all probes. While the server has not been there yet the proxy is not ready, so that a rollout waits
//! for it. Once it has been, or when it takes so long that a restart would be next, the proxy says that it is alive, for
//! restarting it would help nobody; what is the matter with the server then stands in the answer.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use http::{Method, Response, StatusCode};
use serde_json::json;

use crate::{answer, body::Body, limits};

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It is there.
    Up,
    /// It is not, and why.
    Down(&'static str),
    /// Nobody asks it: it is somebody else's.
    Unasked,
}

/// What is remembered from one question to the next.
pub(crate) struct Health {
    began: Instant,
    /// Whether the server has been there.
    started: AtomicBool,
}

impl Health {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), started: AtomicBool::new(false) }
    }

    pub(crate) fn answer(&self, method: &Method, transport: &str, condition: Condition) -> Response<Body> {
        if method != Method::GET {
            return answer::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let now = jiff::Timestamp::now().to_string();
        let mut health = json!({"status": "healthy", "timestamp": now, "transport": transport});
        let mut status = StatusCode::OK;
        match condition {
            Condition::Unasked => {}
            Condition::Up => {
                self.started.store(true, Ordering::Relaxed);
                health["mcp"] = json!({"available": true, "last_checked": now});
            }
            Condition::Down(why) => {
                let starts =
                    !self.started.load(Ordering::Relaxed) && self.began.elapsed() < limits::START_TIME;
                if starts {
                    status = StatusCode::SERVICE_UNAVAILABLE;
                }
                health["status"] = if starts { "starting" } else { "degraded" }.into();
                health["mcp"] = json!({"available": false, "error": why, "last_checked": now});
            }
        }
        answer::json(status, health.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn status(health: &Health, condition: Condition) -> u16 {
        health.answer(&Method::GET, "sse", condition).status().as_u16()
    }

    #[test]
    fn a_proxy_is_ready_when_its_server_has_been_there_or_takes_too_long() {
        let health = Health::new();
        assert_eq!(status(&health, Condition::Down("it starts")), 503);
        assert_eq!(status(&health, Condition::Up), 200);
        assert_eq!(status(&health, Condition::Down("it has died")), 200);
        let long_ago = Instant::now().checked_sub(limits::START_TIME + Duration::from_secs(1)).unwrap();
        let slow = Health { began: long_ago, started: AtomicBool::new(false) };
        assert_eq!(status(&slow, Condition::Down("its image is large")), 200);
        assert_eq!(status(&Health::new(), Condition::Unasked), 200);
    }
}
