//! What a proxy would do with a request, without a server.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use skep_config::{RunConfig, run_config::Middleware};
use skep_gateway::{
    body::Budget,
    http::response,
    identity::Identity,
    message::{Exchange, ParsedMessage},
    middleware::{Chain, Explanation, explain},
};

use crate::{
    ConfigError,
    front::{context, middlewares},
    limits,
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

/// What each middleware of a proxy decides about a request, up to the first that rejects it.
pub async fn explain_request(
    config: &RunConfig,
    caller: &Caller,
    method: &str,
    params: &Value,
) -> Result<Vec<Explanation>, ConfigError> {
    let mut exchange = exchange(caller, method, params)?;
    explain(&middlewares(config)?, &context(config), &mut exchange).await
}

/// Which of these tools a caller would be listed, under the names that it sees.
pub async fn listed_tools(
    config: &RunConfig,
    caller: &Caller,
    tools: &[String],
) -> Result<Vec<String>, ConfigError> {
    let mut exchange = exchange(caller, "tools/list", &json!({}))?;
    let all = middlewares(config)?;
    let rejected = explain(&all, &context(config), &mut exchange).await?;
    if rejected.iter().any(|explanation| explanation.outcome.is_rejected()) {
        return Ok(Vec::new());
    }
    let filters: Vec<Middleware> = all
        .into_iter()
        .filter(|middleware| matches!(middleware, Middleware::ToolFilter(_) | Middleware::Authorization(_)))
        .collect();
    let chain = Chain::new(&filters, &context(config))?;
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}});
    let response = response::json(StatusCode::OK, list.to_string());
    let seen = chain.filter(&exchange, response, &Budget::new(limits::BODIES)).await.into_body();
    let seen = seen.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut seen: Value = serde_json::from_slice(&seen).unwrap_or_default();
    let tools = seen["result"]["tools"].take();
    let tools = tools.as_array().into_iter().flatten();
    Ok(tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect())
}

/// The request, as it has been read.
fn exchange(caller: &Caller, method: &str, params: &Value) -> Result<Exchange, ConfigError> {
    let invalid = |what: &str| ConfigError::new(what.to_owned());
    let mut request = Request::post("/mcp").header(header::CONTENT_TYPE, "application/json");
    if let Caller::Token(token) = caller {
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
    if let Caller::Claims(claims) = caller {
        exchange.identity = Some(Arc::new(Identity::with_claims(claims.clone())));
    }
    Ok(exchange)
}
