//! Pages about the virtual server and its backends.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use skep_gateway::http::{Body, response};

use super::Front;
use crate::{
    backend::{Backend, Status, VERSION},
    limits,
};

/// A page that needs no authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Health,
    Readiness,
    Status,
    BackendsHealth,
}

impl Page {
    /// The page at this path, if there is one.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/health" | "/ping" => Some(Self::Health),
            "/readyz" => Some(Self::Readiness),
            "/status" => Some(Self::Status),
            "/api/backends/health" => Some(Self::BackendsHealth),
            _ => None,
        }
    }
}

impl Front {
    /// The response with this page.
    pub(super) async fn page(&self, page: Page) -> Response<Body> {
        let page = match page {
            Page::Health => json!({"status": "ok"}),
            Page::Readiness => return self.readiness().await,
            Page::Status => self.status().await,
            Page::BackendsHealth => self.backends_health().await,
        };
        let mut page = response::json(StatusCode::OK, page.to_string());
        let headers = page.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        page
    }

    /// It is ready when it knows its backends and what they offer, or that they do not respond.
    async fn readiness(&self) -> Response<Body> {
        let mode = if self.discovery.is_some() { "dynamic" } else { "static" };
        if self.wait_until_ready().await {
            return response::json(StatusCode::OK, json!({"status": "ready", "mode": mode}).to_string());
        }
        let reason = if *self.is_synced.borrow() { "backends_pending" } else { "cache_sync_pending" };
        let body = json!({"status": "not_ready", "mode": mode, "reason": reason});
        response::json(StatusCode::SERVICE_UNAVAILABLE, body.to_string())
    }

    /// Waits a moment until it is ready: backends are listed within milliseconds, and another probe comes seconds later.
    async fn wait_until_ready(&self) -> bool {
        let mut is_ready = self.is_ready.subscribe();
        let ready = tokio::time::timeout(limits::READY_TIME, is_ready.wait_for(|is_ready| *is_ready));
        ready.await.is_ok_and(|ready| ready.is_ok())
    }

    /// A virtual server that has just started does not show some of its backends and not yet the others.
    async fn status(&self) -> Value {
        self.wait_until_ready().await;
        let backends = self.views.backends();
        let is_healthy = backends.values().any(|backend| backend.health().status == Status::Healthy);
        let backends: Vec<Value> = backends.values().map(|backend| status(backend)).collect();
        json!({"backends": backends, "healthy": is_healthy, "version": VERSION, "group_ref": self.group})
    }

    /// The names of the fields are those that ToolHive's page has.
    async fn backends_health(&self) -> Value {
        self.wait_until_ready().await;
        let all = self.views.backends();
        // Of those that have not been checked yet, there is nothing to show.
        let backends: Vec<_> = all.values().filter(|backend| backend.health().checked.is_some()).collect();
        let count =
            |status: Status| backends.iter().filter(|backend| backend.health().status == status).count();
        let states = backends.iter().map(|backend| (backend.name.to_string(), health(backend)));
        json!({
            "monitoring_enabled": true,
            "summary": {
                "Total": backends.len(),
                "Healthy": count(Status::Healthy),
                "Degraded": count(Status::Degraded),
                "Unhealthy": count(Status::Unhealthy),
                "Unknown": count(Status::Unknown),
                "Unauthenticated": count(Status::Unauthenticated),
            },
            "backends": states.collect::<serde_json::Map<_, _>>(),
        })
    }
}

fn status(backend: &Backend) -> Value {
    let mut status = json!({
        "name": &*backend.name,
        "health": backend.health().status.as_str(),
        "transport": backend.transport.as_str(),
        "auth_type": backend.credentials.kind(),
    });
    if let Some(revision) = backend.revision() {
        status["mcp_revision"] = revision.name().into();
    }
    status
}

fn health(backend: &Backend) -> Value {
    let health = backend.health();
    json!({
        "Status": health.status.as_str(),
        "ConsecutiveFailures": health.failures,
        "LastCheckTime": health.checked.unwrap_or(health.changed).to_string(),
        "LastErrorCategory": health.category,
        "LastTransitionTime": health.changed.to_string(),
        "CircuitState": health.circuit.as_str(),
        "CircuitLastChanged": health.circuit_changed.to_string(),
        "MCPRevision": backend.revision().map(|revision| revision.name()).unwrap_or_default(),
    })
}
