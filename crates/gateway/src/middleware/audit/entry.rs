//! What an entry has: the type of event, who requested what, and how it ended.

use std::{borrow::Cow, net::IpAddr};

use http::{HeaderMap, Method, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Log;
use crate::{
    headers::{FORWARDED_FOR, last_forwarded},
    http::{Ended, REQUEST_ID},
    identity::Identity,
    limits,
    message::{Exchange, Origin},
    middleware::{
        oauth_events::OauthEvent,
        telemetry::{RpcError, rpc_error},
    },
    truncate::truncate_to,
};

/// The type of a stream that a client listens to. No filter may name it.
pub(super) const STREAM: &str = "sse_connection";

/// The types of events that a filter may name.
pub(super) const TYPES: [&str; 14] = [
    "mcp_initialize",
    "mcp_tool_call",
    "mcp_tools_list",
    "mcp_resource_read",
    "mcp_resources_list",
    "mcp_prompt_get",
    "mcp_prompts_list",
    "mcp_notification",
    "mcp_ping",
    "mcp_logging",
    "mcp_completion",
    "mcp_roots_list_changed",
    "mcp_request",
    "http_request",
];
/// How much of an error message is written.
const ERROR_MESSAGE: usize = 256;

/// The entry of something that has happened at the authorization server.
pub(super) fn oauth_entry(event: &OauthEvent<'_>, component: &str) -> Value {
    let now = Timestamp::now().to_string();
    let user = if event.user.is_empty() { "anonymous" } else { event.user };
    json!({
        "time": now, "level": "AUDIT", "msg": "audit_event", "audit_id": Uuid::new_v4().to_string(),
        "type": event.type_, "logged_at": now, "outcome": event.outcome, "component": component,
        "source": {"type": "network", "value": event.peer.map(|peer| peer.to_string()).unwrap_or_default()},
        "subjects": {"user_id": event.user, "user": user},
        "target": {"type": "client", "name": short(event.client)},
    })
}

/// What is known of a request before its response.
pub(super) fn entry(exchange: &Exchange, type_: &str, log: &Log) -> Map<String, Value> {
    let now = Timestamp::now().to_string();
    let message = exchange.message.as_ref();
    let target = json!({
        "endpoint": short(exchange.path.path()),
        "method": short(message.map_or(exchange.method.as_str(), |message| message.method_name.as_str())),
        "name": short(message.and_then(|message| message.target.as_deref()).unwrap_or_default()),
        "type": target_type(type_),
    });
    let source = json!({
        "type": "network",
        "value": source(exchange, log.trusts_headers).to_string(),
        "extra": {
            "user_agent": short(text(&exchange.headers, header::USER_AGENT.as_str())),
            "request_id": short(text(&exchange.headers, REQUEST_ID.as_str())),
        },
    });
    let identity = exchange.caller.identity.as_deref();
    let entry = json!({
        "time": now, "level": "AUDIT", "msg": "audit_event", "audit_id": exchange.audit_id().to_string(),
        "type": type_, "logged_at": now, "source": source, "subjects": subjects(identity), "target": target,
    });
    let mut entry = match entry {
        Value::Object(entry) => entry,
        _ => Map::new(),
    };
    let most = log.config.max_delegation_depth() as usize;
    let delegation = identity.and_then(|identity| identity.delegation.description(most));
    entry.extend(delegation.map(|delegation| ("delegation".to_owned(), delegation)));
    if let Origin::Part(part) = &exchange.origin {
        let call = json!({"tool": &*part.tool, "audit_id": part.audit_id.to_string()});
        entry.insert("part_of".to_owned(), call);
    }
    let workflow = exchange.origin.workflow();
    entry.extend(workflow.map(|workflow| ("authorized_as".to_owned(), workflow_text(&workflow.subject))));
    entry
}

/// A text of the request. A stranger could fill the log with it.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    truncate_to(text, limits::AUDIT_TEXT)
}

/// The address of the client: of the peer, or what a trusted proxy in front says of its own.
fn source(exchange: &Exchange, trusts_headers: bool) -> IpAddr {
    let headers = &exchange.headers;
    let named = match headers.contains_key(&FORWARDED_FOR) {
        true => last_forwarded(headers),
        // Some proxies replace this one instead.
        false => text(headers, "x-real-ip").trim().parse().ok(),
    };
    named.filter(|_| trusts_headers).unwrap_or_else(|| exchange.peer.ip())
}

/// A workflow, as policies name it.
fn workflow_text(name: &str) -> Value {
    format!("Workflow::{name:?}").into()
}

fn subjects(identity: Option<&Identity>) -> Value {
    let claim =
        |name: &str| identity?.claims.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let user = ["name", "preferred_username", "email"].into_iter().find_map(claim);
    let subject = identity.map_or("", |identity| identity.subject.as_str());
    let mut subjects = json!({"user_id": subject, "user": user.as_deref().unwrap_or("anonymous")});
    for name in ["client_name", "client_version"] {
        if let Some(value) = claim(name) {
            subjects[name] = value.into();
        }
    }
    subjects
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

pub(super) fn text_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
}

pub(super) fn event_type(exchange: &Exchange) -> &'static str {
    let Some(message) = &exchange.message else {
        let accept = text(&exchange.headers, header::ACCEPT.as_str()).to_ascii_lowercase();
        let listens = exchange.method == Method::GET && accept.contains("text/event-stream");
        return if listens { STREAM } else { "http_request" };
    };
    match message.method_name.as_str() {
        "initialize" => "mcp_initialize",
        "tools/call" => "mcp_tool_call",
        "tools/list" => "mcp_tools_list",
        "resources/read" => "mcp_resource_read",
        "resources/list" => "mcp_resources_list",
        "prompts/get" => "mcp_prompt_get",
        "prompts/list" => "mcp_prompts_list",
        "ping" => "mcp_ping",
        "logging/setLevel" => "mcp_logging",
        "completion/complete" => "mcp_completion",
        "notifications/roots/list_changed" => "mcp_roots_list_changed",
        "notifications/message" => "mcp_notification",
        _ => "mcp_request",
    }
}

fn target_type(event: &str) -> &'static str {
    match event {
        "mcp_tool_call" => "tool",
        "mcp_resource_read" => "resource",
        "mcp_prompt_get" => "prompt",
        STREAM => "sse_endpoint",
        _ => "endpoint",
    }
}

/// How it ended. A call may fail although the HTTP status is 200.
pub(super) fn outcome(status: StatusCode, has_error: bool) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "denied",
        status if status.is_client_error() => "failure",
        status if status.is_server_error() => "error",
        _ if has_error => "application_error",
        _ => "success",
    }
}

/// The error of a response, if it is one.
pub(super) fn error(end: &Ended) -> Option<RpcError> {
    let mut error = rpc_error(end)?;
    let end = error.message.floor_char_boundary(ERROR_MESSAGE);
    error.message.truncate(end);
    Some(error)
}
