//! A server that speaks MCP over HTTP: requests are forwarded unchanged but for the session id, which is the server's.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{
    HeaderMap, Method, Request, Response, Uri, Version,
    uri::{Authority, PathAndQuery},
};
use http_body_util::{BodyDataStream, Full};
use skep_config::{RunConfig, run_config::Transport};
use skep_gateway::{
    Turns,
    headers::{MCP_SESSION_ID, strip_hop_by_hop},
    http::{Body, events},
    message::Exchange,
    middleware::Chain,
    outbound::{Client, Error, Target, UpstreamBody, outgoing},
    sessions::{Ended, Sessions, is_lost, may_be_lost},
};
use skep_mcp::Rejection;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::{
    announced::Announced, reachability::Reachability, session, session::Current, sse,
    tool_changes::ToolChanges,
};
use crate::{
    ConfigError, health::Availability, limits, public_url::PublicUrl, runtime::kubernetes::Readiness,
};

/// The variable that enables health checks of remote servers.
const REMOTE_HEALTH_CHECKS: &str = "TOOLHIVE_REMOTE_HEALTHCHECKS";

/// A server behind HTTP.
pub(crate) struct HttpServer {
    pub(super) client: Client,
    pub(super) target: Target,
    pub(super) sessions: Sessions,
    /// Those that must not be restored.
    pub(super) ended: Ended,
    /// Those that are being restored.
    pub(super) turns: Turns<Box<str>>,
    reachability: Reachability,
    /// The readiness of its pods, where it runs in the cluster.
    readiness: Option<Readiness>,
    /// The endpoint for messages of a server of 2024.
    endpoint: Option<PublicUrl>,
    /// The endpoints that it has announced.
    announced: Announced,
    tool_changes: ToolChanges,
    /// Whether streams are to end.
    closing: watch::Sender<bool>,
    /// Whether its health is checked.
    is_checked: bool,
    /// One health check at a time.
    checking: tokio::sync::Mutex<()>,
}

impl HttpServer {
    /// The server that the RunConfig describes, at this address, of which the pods may be known.
    pub(crate) fn new(
        config: &RunConfig,
        target: Target,
        sessions: Sessions,
        readiness: Option<Readiness>,
    ) -> Result<Self, ConfigError> {
        let checks_remote =
            std::env::var(REMOTE_HEALTH_CHECKS).is_ok_and(|value| value == "true" || value == "1");
        Ok(Self {
            client: Client::new(target.remote)?,
            is_checked: !target.remote || checks_remote,
            target,
            sessions,
            ended: Ended::default(),
            turns: Turns::new(usize::MAX, 1),
            reachability: Reachability::new(),
            readiness,
            endpoint: (config.transport == Transport::Sse).then(|| PublicUrl::new(config)),
            announced: Announced::default(),
            tool_changes: ToolChanges::new(),
            closing: watch::Sender::new(false),
            checking: tokio::sync::Mutex::default(),
        })
    }

    /// Ends the streams of clients that listen for messages of the server. They connect again, to another proxy.
    pub(crate) fn close_streams(&self) {
        self.closing.send_replace(true);
    }

    /// Counts how often it has announced other tools to clients that listen.
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.tool_changes.subscribe()
    }

    /// A stream on which a client listens.
    fn listened(&self, body: Body, until_closed: bool) -> Body {
        let pieces = self.tool_changes.counted(BodyDataStream::new(body));
        if !until_closed {
            return Body::Made(pieces.boxed());
        }
        let mut closing = self.closing.subscribe();
        let closed = async move {
            closing.wait_for(|closing| *closing).await.ok();
        };
        Body::Made(pieces.take_until(Box::pin(closed)).boxed())
    }

    /// Whether it runs elsewhere.
    pub(crate) fn is_remote(&self) -> bool {
        self.target.remote
    }

    /// Whether it speaks the HTTP+SSE transport of 2024.
    pub(crate) fn is_http_sse(&self) -> bool {
        self.endpoint.is_some()
    }

    /// Whether a request by this method to this path may be sent. A remote server of 2024 gets messages only where it has
    /// announced it.
    pub(crate) fn accepts(&self, method: &Method, path: &str) -> bool {
        let is_message = self.is_remote() && self.is_http_sse() && method == Method::POST;
        if is_message { self.announced.contains(path) } else { self.target.accepts(method, path) }
    }

    /// Whether the server is available. It is checked only if it has not responded lately.
    pub(crate) async fn availability(&self) -> Availability {
        if !self.is_checked {
            return Availability::Unchecked;
        }
        if !self.reachability.answered_within(limits::HEALTH_AGE)
            && let Ok(_turn) = self.checking.try_lock()
        {
            let get = |uri| request(Method::GET, uri, HeaderMap::new(), Bytes::new());
            let root = PathAndQuery::from_static("/");
            let uri = self.target.uri(&Method::GET, &root, None).unwrap_or_default();
            let checked = self.client.send(&uri, get);
            match tokio::time::timeout(limits::HEALTH_TIME, checked).await {
                Ok(Ok(answer)) if !answer.status().is_server_error() => self.reachability.record_response(),
                _ => {
                    self.reachability.record_failure();
                }
            }
        }
        match &self.readiness {
            _ if !self.reachability.is_missing() => Availability::Up,
            Some(readiness) if !readiness.serves() => {
                Availability::Down("the server has no pod that is ready")
            }
            _ => Availability::Down("the server cannot be reached"),
        }
    }

    /// Closes idle connections.
    pub(crate) async fn run(&self) {
        self.client.expire().await;
    }

    /// Forwards a request that has passed through the chain. If its session is restored, its `initialize` passes through
    /// the chain, too.
    pub(crate) async fn send(&self, exchange: &Exchange, chain: &Chain) -> Result<Response<Body>, Rejection> {
        let response = self.send_in_session(exchange, chain).await?;
        let response = match &self.endpoint {
            Some(endpoint) => sse::with_proxy_endpoint(exchange, response, endpoint, &self.announced),
            None => response,
        };
        let method = exchange.message.as_ref().and_then(|message| message.method);
        let is_get = exchange.method == Method::GET;
        let listens = (is_get || method == Some(skep_mcp::Method::SubscriptionsListen))
            && events::is_stream(response.headers());
        Ok(if listens { response.map(|body| self.listened(body, is_get)) } else { response })
    }

    async fn send_in_session(&self, exchange: &Exchange, chain: &Chain) -> Result<Response<Body>, Rejection> {
        let current = self.current(exchange).await?;
        let answer = self.forward(exchange, current.as_ref()).await;
        match (answer, current) {
            (Ok(response), Some(current))
                if exchange.method == Method::DELETE && current.is_unknown(&response) =>
            {
                self.end(&current, exchange.peer.ip()).await?;
                Err(Rejection::Session)
            }
            // In a box: what is seldom needed would make every request larger.
            (Ok(response), Some(current))
                if exchange.method != Method::DELETE && may_be_lost(response.status()) =>
            {
                Box::pin(async {
                    match is_lost(response.status(), self.ping(exchange, &current)).await {
                        true if current.may_be_restored() => {
                            self.restore(exchange, chain, current, Ok(response)).await
                        }
                        true => Err(Rejection::Session),
                        false => self.record(exchange, Some(current), response).await,
                    }
                })
                .await
            }
            (Err(error), Some(current)) if error.is_connect() || is_repeatable(exchange) => {
                Box::pin(self.restore(exchange, chain, current, Err(()))).await
            }
            // It starts a session, and its server ended before it responded.
            (Err(error), None) if !error.is_connect() && is_repeatable(exchange) => {
                debug!(%error, "connection lost: sending the request again");
                let again = self.repeatedly(|| self.forward(exchange, None));
                let response = Box::pin(again).await.map_err(unreachable)?;
                self.record(exchange, None, response).await
            }
            (Ok(response), current) => self.record(exchange, current, response).await,
            (Err(error), _) => Err(unreachable(error)),
        }
    }

    pub(super) async fn forward(
        &self,
        exchange: &Exchange,
        current: Option<&Current>,
    ) -> Result<Response<UpstreamBody>, Error> {
        let build = |uri| {
            let mut headers = outgoing(&exchange.headers, &self.target, exchange.peer);
            match current.map(Current::other_id) {
                // The client has another id than the server.
                Some(Some(id)) => session::set(&mut headers, id),
                Some(None) => {}
                None => {
                    headers.remove(&MCP_SESSION_ID);
                }
            }
            request(exchange.method.clone(), uri, headers, exchange.body.clone())
        };
        let pod = current.and_then(|current| current.session.pod.as_deref());
        self.send_when_available(&self.uri(&exchange.method, exchange, pod), pod, build).await
    }

    /// Sends a request that may be processed twice, until a connection does not break.
    pub(super) async fn repeatedly<F>(&self, send: impl Fn() -> F) -> Result<Response<UpstreamBody>, Error>
    where
        F: Future<Output = Result<Response<UpstreamBody>, Error>>,
    {
        for _ in 1..limits::RESENDS {
            match send().await {
                Err(error) if !error.is_connect() => debug!(%error, "connection lost: trying again"),
                sent => return sent,
            }
            // What is ending has ended then.
            tokio::time::sleep(limits::SERVER_PAUSE).await;
        }
        send().await
    }

    /// Sends a request, to this pod or to any. While a server in the cluster is starting or stopping, it waits:
    /// as long as there is no connection, nothing was sent, so nothing is done twice.
    pub(super) async fn send_when_available(
        &self,
        uri: &Uri,
        pod: Option<&Authority>,
        build: impl Fn(Uri) -> Request<Full<Bytes>>,
    ) -> Result<Response<UpstreamBody>, Error> {
        loop {
            match self.client.send(uri, &build).await {
                Ok(response) => {
                    self.reachability.record_response();
                    return Ok(response);
                }
                Err(error) if error.is_connect() && pod.is_none() && !self.target.remote => {
                    if !self.wait_until_available().await {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits a moment for a server that cannot be connected to, and returns whether to try again.
    async fn wait_until_available(&self) -> bool {
        let missing = self.reachability.record_failure();
        match &self.readiness {
            Some(readiness) if !readiness.serves() => {
                let patience = limits::SERVER_START_TIME.saturating_sub(missing);
                let serves = tokio::time::timeout(patience, readiness.clone().wait_until_serving()).await;
                // What it needs from its pod being ready to listening counts from now.
                self.reachability.restart();
                serves.is_ok_and(|serves| serves)
            }
            readiness if missing < listen_time(readiness.as_ref()) => {
                tokio::time::sleep(limits::SERVER_PAUSE).await;
                true
            }
            _ => false,
        }
    }

    /// Both are valid: the target was checked when it was created, the path by the parser of requests.
    pub(super) fn uri(&self, method: &Method, exchange: &Exchange, pod: Option<&Authority>) -> Uri {
        self.target.uri(method, &exchange.path, pod).unwrap_or_default()
    }
}

pub(super) fn request(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

pub(super) fn unreachable(error: Error) -> Rejection {
    warn!(%error, "the server cannot be reached");
    Rejection::Unreachable
}

/// How long a server may take to listen.
fn listen_time(readiness: Option<&Readiness>) -> Duration {
    if readiness.is_some() { limits::POD_LISTEN_TIME } else { limits::SERVER_LISTEN_TIME }
}

/// Whether a request may be sent again when it is unknown whether the server has processed it.
fn is_repeatable(exchange: &Exchange) -> bool {
    let method = exchange.message.as_ref().and_then(|message| message.method);
    method.is_some_and(skep_mcp::Method::is_repeatable)
}

pub(super) fn client_response(response: Response<UpstreamBody>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    // It was not requested, and nothing may follow on the client's connection.
    if parts.status.is_informational() {
        return skep_gateway::http::response::error(&Rejection::Unreachable, None);
    }
    strip_hop_by_hop(&mut parts.headers);
    parts.extensions.clear();
    // Whatever the server speaks.
    parts.version = Version::HTTP_11;
    Response::from_parts(parts, Body::Upstream(body))
}
