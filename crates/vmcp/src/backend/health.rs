//! The health of a backend, by its last checks, and its circuit breaker. Nothing here does I/O.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use skep_api::vmcp::{CircuitBreaker, FailureHandling};

use super::BackendError;

/// A check that takes longer makes a backend degraded.
const SLOW: Duration = Duration::from_secs(5);

/// Whether a backend can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    #[default]
    Unknown,
    Healthy,
    /// Slow, or only just back.
    Degraded,
    Unhealthy,
    /// It needs credentials, and none are configured.
    Unauthenticated,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
            Self::Unauthenticated => "unauthenticated",
        }
    }
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Circuit {
    #[default]
    Closed,
    Open,
    HalfOpen,
}

impl Circuit {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// When a backend counts as unhealthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds {
    unhealthy: u32,
    /// After how many failures the circuit opens, and for how long.
    circuit: Option<(u32, Duration)>,
    /// Whether credentials are configured: then a backend that rejects those of a check is not to blame.
    has_credentials: bool,
}

impl Thresholds {
    pub(crate) fn new(handling: Option<&FailureHandling>) -> Self {
        let count =
            |number: Option<i64>, default| number.and_then(|n| u32::try_from(n).ok()).unwrap_or(default);
        let breaker = handling.and_then(|handling| handling.circuit_breaker.as_ref());
        let circuit = |breaker: &CircuitBreaker| {
            let timeout = breaker.timeout.as_ref().and_then(|timeout| timeout.to_std().ok());
            (count(breaker.failure_threshold, 5), timeout.unwrap_or(Duration::from_secs(60)))
        };
        Self {
            unhealthy: count(handling.and_then(|handling| handling.unhealthy_threshold), 3),
            circuit: breaker.filter(|breaker| breaker.enabled == Some(true)).map(circuit),
            has_credentials: false,
        }
    }

    /// The same for a backend with credentials, or without.
    pub(crate) fn with_credentials(self, has_credentials: bool) -> Self {
        Self { has_credentials, ..self }
    }
}

/// The health of a backend.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub(crate) status: Status,
    pub(crate) failures: u32,
    pub(crate) checked: Option<Timestamp>,
    pub(crate) changed: Timestamp,
    pub(crate) category: &'static str,
    pub(crate) circuit: Circuit,
    pub(crate) circuit_changed: Timestamp,
    opened: Option<Instant>,
}

impl Health {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            status: Status::Unknown,
            failures: 0,
            checked: None,
            changed: now,
            category: "",
            circuit: Circuit::Closed,
            circuit_changed: now,
            opened: None,
        }
    }

    /// Whether it may be checked now. The first check after the circuit was open decides whether it closes.
    pub(crate) fn may_check(&mut self, thresholds: &Thresholds, now: Instant, time: Timestamp) -> bool {
        let (Circuit::Open, Some((_, timeout)), Some(opened)) =
            (self.circuit, thresholds.circuit, self.opened)
        else {
            return true;
        };
        let is_over = now.saturating_duration_since(opened) >= timeout;
        if is_over {
            self.set_circuit(Circuit::HalfOpen, time);
        }
        is_over
    }

    /// Records a check that took this long.
    pub(crate) fn succeeded(&mut self, took: Duration, time: Timestamp) {
        let was_unhealthy = self.status == Status::Unhealthy;
        let status = if was_unhealthy || took > SLOW { Status::Degraded } else { Status::Healthy };
        self.set_status(status, time);
        (self.failures, self.category) = (0, "");
        self.set_circuit(Circuit::Closed, time);
    }

    /// Records a check that failed.
    pub(crate) fn failed(
        &mut self,
        error: &BackendError,
        thresholds: &Thresholds,
        now: Instant,
        time: Timestamp,
    ) {
        if error.is_unauthenticated() && thresholds.has_credentials {
            return self.succeeded(Duration::ZERO, time);
        }
        self.failures = self.failures.saturating_add(1);
        self.category = error.category();
        let status = match self.status {
            _ if error.is_unauthenticated() => Status::Unauthenticated,
            _ if self.failures >= thresholds.unhealthy => Status::Unhealthy,
            status => status,
        };
        self.set_status(status, time);
        let opens = thresholds.circuit.is_some_and(|(failures, _)| self.failures >= failures);
        if opens || self.circuit == Circuit::HalfOpen {
            self.set_circuit(Circuit::Open, time);
            self.opened = Some(now);
        }
    }

    fn set_status(&mut self, status: Status, time: Timestamp) {
        self.checked = Some(time);
        if self.status != status {
            (self.status, self.changed) = (status, time);
        }
    }

    fn set_circuit(&mut self, circuit: Circuit, time: Timestamp) {
        if self.circuit != circuit {
            (self.circuit, self.circuit_changed) = (circuit, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOWN: BackendError = BackendError::Broken;

    fn thresholds() -> Thresholds {
        let handling = json!({"unhealthyThreshold": 2, "circuitBreaker":
            {"enabled": true, "failureThreshold": 3, "timeout": "10s"}});
        Thresholds::new(Some(&serde_json::from_value(handling).unwrap()))
    }

    #[test]
    fn a_backend_is_unhealthy_from_the_threshold_on_and_degraded_when_it_is_back() {
        let (now, time) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let mut health = Health::new(time);
        assert_eq!(health.status, Status::Unknown);
        health.succeeded(Duration::ZERO, time);
        health.failed(&DOWN, &thresholds(), now, time);
        assert_eq!((health.status, health.failures), (Status::Healthy, 1));
        health.failed(&DOWN, &thresholds(), now, time);
        assert_eq!((health.status, health.category), (Status::Unhealthy, "backend_unavailable"));
        health.succeeded(Duration::ZERO, time);
        assert_eq!((health.status, health.failures, health.category), (Status::Degraded, 0, ""));
        health.succeeded(Duration::ZERO, time);
        assert_eq!(health.status, Status::Healthy);
        health.succeeded(Duration::from_secs(6), time);
        assert_eq!(health.status, Status::Degraded);
    }

    #[test]
    fn an_open_circuit_is_not_checked_until_its_time_is_over() {
        let (now, time) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let mut health = Health::new(time);
        for _ in 0..3 {
            assert!(health.may_check(&thresholds(), now, time));
            health.failed(&DOWN, &thresholds(), now, time);
        }
        assert_eq!(health.circuit, Circuit::Open);
        assert!(!health.may_check(&thresholds(), now + Duration::from_secs(9), time));
        assert!(health.may_check(&thresholds(), now + Duration::from_secs(10), time));
        assert_eq!(health.circuit, Circuit::HalfOpen);
        health.failed(&DOWN, &thresholds(), now + Duration::from_secs(10), time);
        assert!(!health.may_check(&thresholds(), now + Duration::from_secs(19), time));
        assert!(health.may_check(&thresholds(), now + Duration::from_secs(20), time));
        health.succeeded(Duration::ZERO, time);
        assert_eq!(health.circuit, Circuit::Closed);
    }

    #[test]
    fn a_backend_that_wants_credentials_is_unauthenticated_unless_some_are_configured() {
        let (now, time) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let rejected = BackendError::Unauthenticated(http::StatusCode::UNAUTHORIZED);
        let mut health = Health::new(time);
        health.failed(&rejected, &thresholds(), now, time);
        assert_eq!(health.status, Status::Unauthenticated);
        let mut health = Health::new(time);
        health.failed(&rejected, &thresholds().with_credentials(true), now, time);
        assert_eq!(health.status, Status::Healthy);
    }
}
