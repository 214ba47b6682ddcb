//! A policy decision point, queried over HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use skep_authz::Pdp;
use tracing::{info, warn};

use super::AuthorizationRequest;
use crate::{
    identity::Holder,
    limits,
    outbound::{self, Busy, Service, ServiceError, Trust},
};

/// A policy decision point. A request that it does not allow is denied, also when it is unavailable.
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

    /// Whether it allows the request of this caller. An unknown one is allowed nothing.
    pub(super) async fn allows(
        &self,
        request: &AuthorizationRequest<'_>,
        holder: Holder,
    ) -> Result<bool, Busy> {
        let principal = request.principal();
        if principal.subject.is_empty() {
            return Ok(false);
        }
        let body = self.settings.request(
            &self.server,
            &principal,
            request.action,
            &request.resource(),
            request.arguments(),
        );
        let action = request.action.as_str();
        let place = self.service.place(Some(holder)).await?;
        let error = match place.post(HeaderMap::new(), Bytes::from(body.to_string())).await {
            Ok((StatusCode::OK, answer)) => {
                let allowed = Pdp::allows(&answer);
                if !allowed {
                    info!(action, "request denied by the policy decision point");
                }
                return Ok(allowed);
            }
            Ok((status, _)) => ServiceError::Status(status),
            Err(error) => error,
        };
        warn!(action, %error, "request denied: the policy decision point returned no decision");
        Ok(false)
    }
}
