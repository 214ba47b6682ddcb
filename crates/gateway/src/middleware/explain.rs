//! What each middleware decides about a request, for people.
//!
//! What decides by itself decides here, too, by the same code as in a running endpoint. What would send requests to others, count, or
//! record is described instead.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use http::{HeaderName, HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde::Serialize;
use serde_json::{Map, Value, json};
use skep_config::run_config::{self, Webhooks};

use super::{Chain, ChainContext, Middleware, type_name};
use crate::{
    ConfigError,
    body::Budget,
    http::{ErrorResponse, response},
    identity::Identity,
    limits,
    message::{Exchange, ParsedMessage},
};

/// Who sends a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// A client without a token.
    Anonymous,
    /// A client whose valid token has these claims.
    Claims(Map<String, Value>),
    /// A client with this token, which its issuer must confirm.
    Token(String),
}

impl Caller {
    /// The request of this caller, as it has been read.
    pub fn request(&self, method: &str, params: &Value) -> Result<Exchange, ConfigError> {
        let invalid = |what: &str| ConfigError::new(what.to_owned());
        let mut request = Request::post("/mcp").header(header::CONTENT_TYPE, "application/json");
        if let Self::Token(token) = self {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| invalid("the token is no token"))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let (head, ()) = request.body(()).map_err(|_| invalid("the request is invalid"))?.into_parts();
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut exchange = Exchange::new(head, peer, &Budget::new(limits::BODIES));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        exchange.body = body.to_string().into();
        let message = ParsedMessage::of(&exchange.headers, &exchange.body);
        exchange.message = Some(message.map_err(|_| invalid("the request is no message of MCP"))?);
        if let Self::Claims(claims) = self {
            exchange.caller.identity = Some(Arc::new(Identity::with_claims(claims.clone())));
        }
        Ok(exchange)
    }
}

/// What a middleware decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The middleware, by its type.
    pub middleware: &'static str,
    /// What it decides.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// By what, and what it changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Outcome {
    /// It passes.
    Passes,
    /// It is rejected.
    Rejected {
        /// The status of the response.
        status: u16,
        /// The message of the response.
        message: String,
    },
    /// Only a running endpoint knows.
    NotTried,
    /// It is its task to decide, and only a running endpoint can.
    Undecided,
}

impl Outcome {
    /// Whether the request goes no further.
    pub fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    /// How it rejects the request, if it does. An error of JSON-RPC has no status of its own.
    pub fn rejection(&self) -> Option<String> {
        match self {
            Self::Rejected { status: 200, message } => Some(format!("rejects it: {message}")),
            Self::Rejected { status, message } => Some(format!("rejects it with {status}: {message}")),
            Self::Passes | Self::NotTried | Self::Undecided => None,
        }
    }
}

/// Passes a request through the middlewares, up to the first that rejects it. A caller that is known already is not
/// authenticated.
pub async fn explain(
    configs: &[run_config::Middleware],
    context: &ChainContext<'_>,
    exchange: &mut Exchange,
) -> Result<Vec<Explanation>, ConfigError> {
    let is_first = |config: &&run_config::Middleware| {
        matches!(config, run_config::Middleware::Origin(_) | run_config::Middleware::Auth(_))
    };
    let (first, others): (Vec<_>, Vec<_>) = configs.iter().partition(is_first);
    let mut explanations = Vec::new();
    for config in first.into_iter().chain(others) {
        let Some(explanation) =
            explain_one(config, run_config::Middleware::oidc(configs), context, exchange).await?
        else {
            continue;
        };
        let is_rejected = explanation.outcome.is_rejected();
        explanations.push(explanation);
        if is_rejected {
            break;
        }
    }
    Ok(explanations)
}

/// Which of these tools a caller is listed, under the names that it sees. None if its request is rejected.
pub async fn explain_list(
    configs: &[run_config::Middleware],
    context: &ChainContext<'_>,
    caller: &Caller,
    tools: Vec<Value>,
) -> Result<Vec<String>, ConfigError> {
    let mut exchange = caller.request("tools/list", &json!({}))?;
    let explained = explain(configs, context, &mut exchange).await?;
    if explained.iter().any(|explanation| explanation.outcome.is_rejected()) {
        return Ok(Vec::new());
    }
    let is_filter = |config: &&run_config::Middleware| {
        matches!(config, run_config::Middleware::ToolFilter(_) | run_config::Middleware::Authorization(_))
    };
    let filters: Vec<_> = configs.iter().filter(is_filter).cloned().collect();
    let oidc = run_config::Middleware::oidc(configs);
    for config in &filters {
        let undecided =
            Middleware::new(config, oidc, context)?.and_then(|it| it.undecided_list(&exchange, &tools));
        if let Some(reason) = undecided {
            return Err(ConfigError::new(reason));
        }
    }
    let chain = Chain::new(&filters, context)?;
    let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}});
    let response = response::json(StatusCode::OK, list.to_string());
    let seen = chain.filter(&exchange, response, &Budget::new(limits::BODIES)).await.into_body();
    let seen = seen.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let seen: Value = serde_json::from_slice(&seen).unwrap_or_default();
    let tools = seen["result"]["tools"].as_array().into_iter().flatten();
    Ok(tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect())
}

async fn explain_one(
    config: &run_config::Middleware,
    oidc: Option<&run_config::Oidc>,
    context: &ChainContext<'_>,
    exchange: &mut Exchange,
) -> Result<Option<Explanation>, ConfigError> {
    use run_config::Middleware as Config;
    let middleware = type_name(config);
    let passes = |details: Vec<String>| Explanation { middleware, outcome: Outcome::Passes, details };
    let not_tried = |details: Vec<String>| Explanation { middleware, outcome: Outcome::NotTried, details };
    Ok(Some(match config {
        Config::Auth(auth) if auth.oidc_config.is_some() && exchange.caller.identity.is_some() => {
            passes(vec!["the caller is given, and no token is verified".into()])
        }
        // What it would decide is not about this caller.
        Config::Auth(auth) if auth.oidc_config.is_none() && is_given(exchange) => {
            let message = "the server verifies no tokens, and takes all callers for the same one: leave the claims or the token out, or set oidcConfigRef";
            return Err(ConfigError::new(message.to_owned()));
        }
        Config::Audit(_) => passes(vec!["the request is recorded in the audit log".into()]),
        Config::TokenExchange(parameters) => {
            let exchange = &parameters.token_exchange_config;
            let token = format!(
                "the caller's token is exchanged at {} for one with the audience {:?}",
                exchange.token_url, exchange.audience
            );
            not_tried(vec![token])
        }
        Config::AwsSts(_) => {
            not_tried(vec!["the request is signed with credentials of AWS for this caller".into()])
        }
        Config::UpstreamSwap(_) => {
            not_tried(vec!["the caller's token is replaced by that of an identity provider".into()])
        }
        Config::MutatingWebhook(parameters) | Config::ValidatingWebhook(parameters) => {
            not_tried(called(parameters))
        }
        Config::RateLimit(_) => not_tried(vec!["the call is counted".into()]),
        Config::Telemetry(_)
        | Config::BodyLimit(_)
        | Config::McpParser
        | Config::Recovery
        | Config::UsageMetrics => {
            return Ok(None);
        }
        Config::Origin(_)
        | Config::Auth(_)
        | Config::StripAuth
        | Config::ToolFilter(_)
        | Config::ToolCallFilter(_)
        | Config::Authorization(_)
        | Config::HeaderForward(_)
        | Config::Unknown(_) => {
            let Some(decides) = Middleware::new(config, oidc, context)? else { return Ok(None) };
            if let Some(details) = decides.undecided(exchange) {
                return Ok(Some(Explanation { middleware, outcome: Outcome::Undecided, details }));
            }
            let before = Seen::of(exchange);
            let mut details = decides.reasons(exchange);
            let outcome = match decides.request(exchange, None).await {
                Ok(()) => Outcome::Passes,
                Err(response) => rejected(response).await,
            };
            details.extend(before.changes(exchange));
            Explanation { middleware, outcome, details }
        }
    }))
}

/// Whether it is asked about a certain caller.
fn is_given(exchange: &Exchange) -> bool {
    exchange.caller.identity.is_some() || exchange.headers.contains_key(header::AUTHORIZATION)
}

/// The webhooks that would be called.
fn called(parameters: &Webhooks) -> Vec<String> {
    let webhooks = parameters.webhooks.iter();
    webhooks.map(|webhook| format!("the webhook {} is called at {}", webhook.name, webhook.url)).collect()
}

async fn rejected(response: ErrorResponse) -> Outcome {
    let (head, body) = (*response).into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let texts = [&json["error"]["message"], &json["error_description"], &json["error"]];
    let message = texts.into_iter().find_map(Value::as_str).map(str::to_owned);
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body).trim().to_owned());
    Outcome::Rejected { status: head.status.as_u16(), message }
}

/// What of a request may change.
struct Seen {
    target: Option<String>,
    headers: Vec<HeaderName>,
}

impl Seen {
    fn of(exchange: &Exchange) -> Self {
        Self { target: target(exchange), headers: exchange.headers.keys().cloned().collect() }
    }

    /// What changed. Values of headers may be secret.
    fn changes(&self, exchange: &Exchange) -> Vec<String> {
        let now = target(exchange);
        let renamed = (self.target != now)
            .then(|| format!("the server's name for it is {:?}", now.unwrap_or_default()));
        let added = exchange.headers.keys().filter(|name| !self.headers.contains(name));
        let added = added.map(|name| format!("adds the header {name}"));
        let removed = self.headers.iter().filter(|name| !exchange.headers.contains_key(*name));
        let removed = removed.map(|name| format!("removes the header {name}"));
        renamed.into_iter().chain(added).chain(removed).collect()
    }
}

fn target(exchange: &Exchange) -> Option<String> {
    exchange.message.as_ref().and_then(|message| message.target.as_deref().map(str::to_owned))
}
