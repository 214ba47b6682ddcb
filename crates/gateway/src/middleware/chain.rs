//! The chain of middlewares that every request passes through, outermost first.

use std::{ops::Deref, sync::Arc};

use http::{HeaderValue, Response, header};
use skep_config::run_config::{self, Transport};

use super::{Extras, Middleware, OauthEvent, Telemetry, Tools, calls::Calls, type_name};
use crate::{
    ConfigError,
    body::Budget,
    http::{Body, ErrorResponse, events, response},
    identity::Identity,
    limits,
    message::{self, Exchange, Filters, ListFilters},
    sessions::Sessions,
};

/// The middlewares of an endpoint.
pub struct Chain {
    middlewares: Vec<Named>,
    calls: Option<Calls>,
    body_limit: usize,
    reads_responses: bool,
}

/// A middleware with its type, as RunConfigs name it.
struct Named {
    type_: &'static str,
    middleware: Middleware,
}

impl Named {
    async fn request(&self, exchange: &mut Exchange, tools: Option<Tools<'_>>) -> Result<(), ErrorResponse> {
        let passed = self.middleware.request(exchange, tools).await;
        if passed.is_err() {
            exchange.rejected_by = Some(self.type_);
        }
        passed
    }
}

impl Deref for Named {
    type Target = Middleware;

    fn deref(&self) -> &Middleware {
        &self.middleware
    }
}

/// What middlewares need to know of the endpoint that they are part of.
pub struct ChainContext<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The address that the endpoint listens on, for metrics on a separate port.
    pub host: &'a str,
    /// Where requests are sent, if that is a remote server.
    pub remote_url: &'a str,
    /// The transport that the server speaks.
    pub transport: Transport,
    /// Whether the `X-Forwarded-*` headers of requests are trusted.
    pub trusts_proxy_headers: bool,
    /// Whether the endpoint joins several servers. ToolHive's then filter lists of templates, too, and name what is denied.
    pub is_virtual: bool,
    /// Tools of the endpoint itself, through which a caller reaches other tools. Policies decide about these others, so that
    /// no caller needs permission for the tools themselves.
    pub own_tools: &'a [&'a str],
    /// Who callers are where they need not authenticate.
    pub unauthenticated: Identity,
    /// The parts that the program adds to the endpoint.
    pub extras: Extras,
    /// The sessions of clients, where the endpoint keeps them with the requests that started them.
    pub sessions: Option<Sessions>,
}

impl Chain {
    /// The chain of these middlewares, outermost first. A type that is not known is an error: it may be one that protects.
    pub fn new(configs: &[run_config::Middleware], context: &ChainContext<'_>) -> Result<Self, ConfigError> {
        let oidc = run_config::Middleware::oidc(configs);
        let mut middlewares = Vec::new();
        let mut body_limit = None;
        for config in configs {
            if let run_config::Middleware::BodyLimit(limit) = config {
                // Where there are two, both hold.
                let limit = usize::try_from(limit.max_bytes()).unwrap_or(usize::MAX);
                body_limit = Some(body_limit.map_or(limit, |other: usize| other.min(limit)));
                continue;
            }
            let named = |middleware| Named { type_: type_name(config), middleware };
            middlewares.extend(Middleware::new(config, oidc, context)?.map(named));
        }
        let Extras { authorization_server, call_log, .. } = &context.extras;
        if let (Some(log), Some(server)) = (call_log, authorization_server) {
            log.set_connection_source(server.clone());
        }
        if let Some(server) = authorization_server {
            let audits: Vec<_> = middlewares
                .iter()
                .filter_map(|middleware: &Named| match &middleware.middleware {
                    Middleware::Audit(audit) => Some(audit.oauth_events()),
                    _ => None,
                })
                .collect();
            server.observe(Arc::new(move |event: &OauthEvent<'_>| {
                event.count();
                audits.iter().for_each(|audit| audit(event));
            }));
        }
        Ok(Self {
            reads_responses: middlewares.iter().any(|middleware| middleware.reads_responses()),
            middlewares,
            calls: call_log.clone().map(Calls),
            body_limit: body_limit.unwrap_or(limits::REQUEST_BODY),
        })
    }

    /// The largest body of a request.
    pub fn body_limit(&self) -> usize {
        self.body_limit
    }

    /// Whether lists are filtered for each caller.
    pub fn filters_lists(&self) -> bool {
        self.reads_responses
    }

    /// The middleware for traces and metrics, if there is one.
    pub fn telemetry(&self) -> Option<&Telemetry> {
        self.middlewares.iter().find_map(|middleware| match &middleware.middleware {
            Middleware::Telemetry(telemetry) => Some(telemetry),
            _ => None,
        })
    }

    /// Checks that what the middlewares need can be used.
    pub async fn check(&self) -> Result<(), ConfigError> {
        for middleware in &self.middlewares {
            middleware.check().await?;
        }
        Ok(())
    }

    /// Whether the keys are there that the tokens of callers are verified with. `None` if callers have no tokens, or those of
    /// this process. The error is why no caller can be authenticated.
    pub async fn check_issuer(&self) -> Option<Result<(), String>> {
        let authentication = self.middlewares.iter().find_map(|middleware| match &middleware.middleware {
            Middleware::Authentication(authentication) => Some(authentication),
            _ => None,
        });
        authentication?.check_issuer().await
    }

    /// Writes and sends what the middlewares have recorded, within a limit.
    pub async fn flush(&self) {
        for middleware in &self.middlewares {
            middleware.flush().await;
        }
        if let Some(telemetry) = self.telemetry() {
            telemetry.flush().await;
        }
    }

    /// Passes a request through those middlewares that need its head only: they authenticate the caller. The first that
    /// rejects it responds, before its body is read.
    pub async fn admit(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        for middleware in self.middlewares.iter().filter(|middleware| middleware.reads_head_only()) {
            middleware.request(exchange, None).await?;
        }
        Ok(())
    }

    /// Passes an admitted request through the other middlewares in turn. The first that rejects it responds. `tools` are those
    /// that it may call.
    pub async fn request(
        &self,
        exchange: &mut Exchange,
        tools: Option<Tools<'_>>,
    ) -> Result<(), ErrorResponse> {
        // A compressed response cannot be parsed.
        if self.reads_responses {
            exchange.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        for middleware in self.middlewares.iter().filter(|middleware| !middleware.reads_head_only()) {
            middleware.request(exchange, tools).await?;
        }
        Ok(())
    }

    /// Passes a call that is made for an admitted request through the same middlewares. It is not measured: it is no request
    /// of a client.
    pub async fn call(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let others = |middleware: &&Named| {
            !middleware.reads_head_only() && !matches!(middleware.middleware, Middleware::Telemetry(_))
        };
        for middleware in self.middlewares.iter().filter(others) {
            middleware.request(exchange, None).await?;
        }
        Ok(())
    }

    /// Prepares a request of the endpoint itself, perhaps for a caller, for the server: with a signature for the caller, and with the
    /// headers that every request has.
    pub async fn prepare(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        for middleware in &self.middlewares {
            match &middleware.middleware {
                Middleware::AwsSts(signer) if exchange.caller.identity.is_some() => {
                    Box::pin(signer.request(exchange)).await?;
                }
                Middleware::HeaderForward(headers) => headers.add(exchange),
                _ => {}
            }
        }
        Ok(())
    }

    /// The middlewares that record such a call.
    fn audits(&self) -> impl Iterator<Item = &Named> {
        self.middlewares.iter().filter(|middleware| matches!(middleware.middleware, Middleware::Audit(_)))
    }

    /// The response of the server as the caller may see it: the innermost middleware filters first.
    pub async fn filter(
        &self,
        exchange: &Exchange,
        response: Response<Body>,
        budget: &Budget,
    ) -> Response<Body> {
        let filters = self.filters(exchange);
        if filters.is_empty() {
            return self.while_authenticated(exchange, response);
        }
        // In a box, so that requests without filters do not carry its size around.
        let holder = || Some(exchange.holder());
        match Box::pin(message::filter(response, filters, budget, holder)).await {
            Ok(response) => self.while_authenticated(exchange, response),
            Err(rejection) => response::error(&rejection, exchange.id()),
        }
    }

    /// The response, of which a stream that only the client ends ends with the caller's token: and soon after the session, if
    /// that is one of this process: a revoked caller must not listen for ever. The client connects again, with a new token.
    fn while_authenticated(&self, exchange: &Exchange, response: Response<Body>) -> Response<Body> {
        let is_endless = exchange.listens() && events::is_stream(response.headers());
        let Some(caller) = exchange.caller.identity.as_ref().filter(|_| is_endless) else { return response };
        let response = match caller.validity() {
            Some(time) => response.map(|body| events::ended_after(body, time)),
            None => response,
        };
        let mut authentications =
            self.middlewares.iter().filter_map(|middleware| match &middleware.middleware {
                Middleware::Authentication(authentication) => Some(authentication),
                _ => None,
            });
        match authentications.find_map(|authentication| authentication.end_of_session(caller)) {
            Some(end) => response.map(|body| events::ended_by(body, end)),
            None => response,
        }
    }

    /// What the caller of a request may see of lists, for as long as it listens.
    pub fn list_filters(&self, exchange: &Exchange) -> ListFilters {
        ListFilters::new(self.filters(exchange))
    }

    fn filters(&self, exchange: &Exchange) -> Filters {
        self.middlewares.iter().rev().filter_map(|middleware| middleware.filter(exchange)).collect()
    }

    /// A request that the middlewares observe, however it ends.
    pub fn observed(&self, exchange: Exchange) -> InFlight<'_> {
        InFlight { chain: self, exchange, is_part: false, has_response: false }
    }

    /// A call that is made for a request: the audit log records it, however it ends.
    pub fn observed_call(&self, exchange: Exchange) -> InFlight<'_> {
        InFlight { chain: self, exchange, is_part: true, has_response: false }
    }

    /// The response, with the middlewares that observe how it ends.
    fn observe(&self, exchange: &Exchange, response: Response<Body>) -> Response<Body> {
        let status = response.status();
        let calls = self.calls.as_ref().and_then(|calls| calls.observer(exchange, status));
        let others = self.middlewares.iter().filter_map(|middleware| middleware.observer(exchange, status));
        let observers = calls.into_iter().chain(others).collect();
        response.map(|body| body.observed(status, observers))
    }

    fn audit(&self, exchange: &Exchange, response: Response<Body>) -> Response<Body> {
        let status = response.status();
        let observers = self.audits().filter_map(|audit| audit.observer(exchange, status)).collect();
        response.map(|body| body.observed(status, observers))
    }
}

/// A request without a response. If it is dropped so, its client has disconnected, and the middlewares record that: the
/// server may have received it.
pub struct InFlight<'a> {
    chain: &'a Chain,
    /// The request.
    pub exchange: Exchange,
    /// Whether it is made for another request.
    is_part: bool,
    has_response: bool,
}

impl InFlight<'_> {
    /// The response, with the middlewares that observe how it ends.
    pub fn respond(mut self, response: Response<Body>) -> Response<Body> {
        self.has_response = true;
        if self.is_part {
            self.chain.audit(&self.exchange, response)
        } else {
            self.chain.observe(&self.exchange, response)
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.has_response {
            return;
        }
        if self.is_part {
            self.chain.audits().for_each(|audit| audit.abandoned(&self.exchange));
        } else {
            self.chain.calls.iter().for_each(|calls| calls.abandoned(&self.exchange));
            self.chain.middlewares.iter().for_each(|middleware| middleware.abandoned(&self.exchange));
        }
    }
}
