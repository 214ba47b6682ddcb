//! The console as an HTTP service.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::json;
use skep_gateway::{
    body,
    http::{Body, Service, response},
};
use tokio::time::timeout;

use crate::{
    Console, Endpoint,
    access::{CALLBACK, Rejected},
    api, assets, limits, mcp,
    responses::{busy, error, not_found},
    sessions,
};

/// Nothing is loaded or run, in an origin of its own.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";
/// The path of probes.
const HEALTH: &str = "/health";

impl Console {
    async fn route(&self, request: Request<Incoming>, peer: IpAddr) -> Response<Body> {
        if request.uri().path() == HEALTH {
            return response::text(StatusCode::OK, "ok\n");
        }
        if request.uri().path() == CALLBACK && request.method() == Method::GET {
            let query = request.uri().query().unwrap_or_default();
            let finished = self.access.finish_login(request.headers(), query, peer).await;
            return finished.unwrap_or_else(not_found);
        }
        let Some(path) = request.uri().path().strip_prefix("/api/").map(str::to_owned) else {
            return match self.access.check_host(request.headers()) {
                Ok(()) => assets::file(request.uri().path(), request.headers()).unwrap_or_else(not_found),
                Err(rejected) => self.rejection(rejected),
            };
        };
        let responded = self.api(&path, request, peer).await;
        let mut response = responded.unwrap_or_else(|rejected| self.rejection(rejected));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    async fn api(
        &self,
        path: &str,
        request: Request<Incoming>,
        peer: IpAddr,
    ) -> Result<Response<Body>, Rejected> {
        self.access.check_origin(request.method(), request.headers())?;
        let endpoint = Endpoint::of(path);
        match (endpoint, request.method()) {
            (Some((Endpoint::Session, _)), method) if method != Method::GET => {
                return Ok(self.change_session(request, peer).await);
            }
            (Some((Endpoint::Login, _)), &Method::POST) => {
                return Ok(self.access.begin_login(peer).await.unwrap_or_else(not_found));
            }
            _ => {}
        }
        let viewer = self.access.viewer(request.headers(), peer).await?;
        Ok(match endpoint {
            Some((Endpoint::Mcp, object)) => mcp::forward(self, &viewer, object, request).await,
            Some((endpoint @ (Endpoint::Sessions | Endpoint::SessionsOf | Endpoint::ClientsOf), object)) => {
                sessions::respond(self, &viewer, endpoint, object, &request).await
            }
            Some((endpoint, object)) => api::respond(self, viewer, endpoint, object, &request).await,
            None => not_found(),
        })
    }

    /// Signs a user in or out.
    async fn change_session(&self, request: Request<Incoming>, peer: IpAddr) -> Response<Body> {
        let (head, body) = request.into_parts();
        let changed = match head.method {
            Method::POST => match timeout(limits::BODY_TIME, body::read(body, limits::SIGN_IN)).await {
                Ok(Ok(body)) => self.access.sign_in(&head.headers, &body, peer).await,
                Ok(Err(_)) | Err(_) => None,
            },
            Method::DELETE => self.access.sign_out(&head.headers),
            _ => None,
        };
        changed.unwrap_or_else(|| error(StatusCode::BAD_REQUEST, "this console has no such sign-in"))
    }

    fn rejection(&self, rejected: Rejected) -> Response<Body> {
        match rejected {
            Rejected::Foreign => {
                error(StatusCode::FORBIDDEN, "only the page of this console may send this request")
            }
            Rejected::Busy => busy(),
            // The page offers what this console has.
            Rejected::Unauthenticated => {
                let (mode, provider) = (self.access.mode(), self.access.provider());
                let body = json!({"error": "sign in first", "mode": mode, "provider": provider});
                response::json(StatusCode::UNAUTHORIZED, body.to_string())
            }
        }
    }
}

impl Service for Console {
    fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send {
        let responding = self.route(request, peer.ip());
        async {
            let mut response = responding.await;
            let headers = response.headers_mut();
            // The page has a policy of its own. All else is data: should a browser show it, it has no rights.
            headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(DATA_POLICY));
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
            headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
            headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
            response
        }
    }

    fn is_draining(&self) -> bool {
        *self.is_closing.borrow()
    }

    async fn run(&self) {
        self.client.expire().await;
    }

    fn close_streams(&self) {
        self.is_closing.send_replace(true);
    }

    fn stop(&self) -> bool {
        false
    }

    async fn flush(&self) {}
}
