//! A policy decision point, queried over HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use skep_authz::Pdp;
use tracing::{info, warn};

use super::Question;
use crate::{
    limits,
    outbound::{self, Service, ServiceError, Trust},
};

/// A policy decision point. What it does not allow is denied, also when it is unavailable.
pub(super) struct DecisionPoint {
    settings: Pdp,
    server: String,
    service: Service,
}

impl DecisionPoint {
    pub(super) fn new(settings: Pdp, server: &str) -> Result<Self, String> {
        settings.check().map_err(|error| format!("pdp.{error}"))?;
        let url = format!("{}/decision", settings.http.url.trim_end_matches('/'));
        let uri = outbound::address(&url).map_err(|error| format!("pdp.http.url: {error}"))?;
        let time = match settings.http.timeout {
            0 => limits::DECISION_TIME,
            seconds => Duration::from_secs(seconds.into()),
        };
        let trust = Trust { unchecked: settings.http.insecure_skip_verify, ..Trust::default() };
        let service = Service::new(uri, time, &trust).map_err(|error| format!("pdp.http: {error}"))?;
        Ok(Self { settings, server: server.to_owned(), service })
    }

    /// Whether it allows the request. An unknown caller is allowed nothing.
    pub(super) async fn allows(&self, question: &Question<'_>) -> bool {
        let principal = question.principal();
        if principal.subject.is_empty() {
            return false;
        }
        let asked = self.settings.question(
            &self.server,
            &principal,
            question.action,
            &question.resource(),
            question.arguments(),
        );
        let action = question.action.as_str();
        match self.service.ask(HeaderMap::new(), Bytes::from(asked.to_string())).await {
            Ok((StatusCode::OK, answer)) => {
                let allowed = Pdp::allows(&answer);
                if !allowed {
                    info!(action, "denied by the policy decision point");
                }
                allowed
            }
            Ok((status, _)) => self.failed(action, &ServiceError::Status(status)),
            Err(error) => self.failed(action, &error),
        }
    }

    fn failed(&self, action: &str, error: &ServiceError) -> bool {
        warn!(action, %error, "denied: the policy decision point is of no use");
        false
    }
}
