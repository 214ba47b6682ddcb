//! The audit log: who requested what, and how it ended.
//!
//! One line for each request, written when its response has ended. Bodies are written only if the configuration enables it,
//! and tokens never.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use http::{HeaderMap, Method, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use skep_config::run_config::{self, AuditParameters, Transport};
use skep_mcp::{Envelope, Message, Outcome};
use tracing::error;

use crate::{
    ConfigError,
    http::{Ended, Observer, REQUEST_ID},
    message::Exchange,
};

/// The types of events that a filter may name.
const TYPES: [&str; 14] = [
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
const COMPONENT: &str = "toolhive-api";
/// How much of a response is parsed for an error that its status does not show.
const PARSED_PREFIX: usize = 4096;

/// The audit log.
pub(crate) struct Audit(Arc<Log>);

struct Log {
    config: run_config::Audit,
    component: String,
    transport: &'static str,
    output: Mutex<Box<dyn Write + Send>>,
}

impl Audit {
    pub(super) fn new(parameters: &AuditParameters) -> Result<Self, ConfigError> {
        let config = parameters.config_data.clone().unwrap_or_default();
        let named = config.event_types.iter().chain(&config.exclude_event_types);
        if let Some(unknown) = named.into_iter().find(|type_| !TYPES.contains(&type_.as_str())) {
            return Err(ConfigError::new(format!("audit: there is no event type {unknown:?}")));
        }
        let output: Box<dyn Write + Send> = match config.log_file.as_str() {
            "" => Box::new(io::stdout()),
            path => Box::new(open(path).map_err(|error| {
                ConfigError::new(format!("audit: cannot append to logFile {path:?}: {error}"))
            })?),
        };
        let named = [&parameters.component, &config.component].into_iter().find(|name| !name.is_empty());
        let component = named.map_or(COMPONENT, String::as_str).to_owned();
        let transport = if parameters.transport_type == Some(Transport::Sse) { "sse" } else { "http" };
        Ok(Self(Arc::new(Log { config, component, transport, output: Mutex::new(output) })))
    }

    /// The observer that writes the entry of the request when its response has ended.
    pub(super) fn observer(&self, exchange: &Exchange) -> Option<Box<dyn Observer>> {
        Some(Box::new(self.record(exchange)?))
    }

    /// Writes the entry of a request whose client disconnected before the response. What became of it is unknown.
    pub(super) fn abandoned(&self, exchange: &Exchange) {
        if let Some(record) = self.record(exchange) {
            record.write(None);
        }
    }

    fn record(&self, exchange: &Exchange) -> Option<Record> {
        let type_ = event_type(exchange);
        let config = &self.0.config;
        let named = |list: &[String]| list.iter().any(|name| name == type_);
        if named(&config.exclude_event_types)
            || !(config.event_types.is_empty() || named(&config.event_types))
        {
            return None;
        }
        let limit = config.max_data_size() as usize;
        let data = config.include_request_data && exchange.body.len() <= limit;
        Some(Record {
            log: self.0.clone(),
            started: exchange.started,
            entry: entry(exchange, type_),
            request: data.then(|| text_of(&exchange.body)),
        })
    }
}

/// Readable by the owner of the log alone.
fn open(path: &str) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// A request whose response is in flight.
struct Record {
    log: Arc<Log>,
    started: Instant,
    entry: Map<String, Value>,
    request: Option<Value>,
}

impl Observer for Record {
    fn prefix(&self) -> usize {
        let data =
            if self.log.config.include_response_data { self.log.config.max_data_size() as usize } else { 0 };
        data.max(PARSED_PREFIX)
    }

    fn ended(self: Box<Self>, end: Ended) {
        self.write(Some(&end));
    }
}

impl Record {
    /// Writes the entry of a response that ended so, or of a request without one.
    fn write(self, end: Option<&Ended>) {
        let Self { log, started, mut entry, request } = self;
        let mut extra = Map::new();
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        extra.insert("duration_ms".into(), millis.into());
        extra.insert("transport".into(), log.transport.into());
        match end {
            Some(end) if end.bytes > 0 => extra.insert("response_size_bytes".into(), end.bytes.into()),
            Some(_) => None,
            None => extra.insert("client_disconnected".into(), true.into()),
        };
        entry.insert("outcome".into(), end.map_or("failure", |end| outcome(&log.config, end)).into());
        entry.insert("component".into(), log.component.clone().into());
        entry.insert("metadata".into(), json!({"extra": extra}));
        let is_small = |end: &&Ended| end.bytes <= u64::from(log.config.max_data_size());
        let response = end.filter(|_| log.config.include_response_data).filter(is_small);
        let response = response.map(|end| text_of(&end.prefix));
        if request.is_some() || response.is_some() {
            entry.insert("data".into(), json!({"request": request, "response": response}));
        }
        log.write(&Value::Object(entry));
    }
}

impl Log {
    /// Writes an entry. A log that cannot be written stops no request, and is reported in the log of the proxy.
    fn write(&self, entry: &Value) {
        let mut line = entry.to_string();
        line.push('\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = output.write_all(line.as_bytes()).and_then(|()| output.flush()) {
            error!(%error, "failed to write the audit log");
        }
    }
}

fn entry(exchange: &Exchange, type_: &str) -> Map<String, Value> {
    let now = Timestamp::now().to_string();
    let message = exchange.message.as_ref();
    let claim = |name: &str| {
        let identity = exchange.identity.as_ref()?;
        identity.claims.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let user = ["name", "preferred_username", "email"].into_iter().find_map(claim);
    let subject = exchange.identity.as_ref().map_or("", |identity| identity.subject.as_str());
    let target = json!({
        "endpoint": exchange.path.path(),
        "method": message.map_or(exchange.method.as_str(), |message| message.method_name.as_str()),
        "name": message.and_then(|message| message.target.as_deref()).unwrap_or_default(),
        "type": target_type(type_),
    });
    let source = json!({
        "type": "network",
        "value": exchange.peer.ip().to_string(),
        "extra": {
            "user_agent": text(&exchange.headers, header::USER_AGENT.as_str()),
            "request_id": text(&exchange.headers, REQUEST_ID.as_str()),
        },
    });
    let entry = json!({
        "time": now, "level": "AUDIT", "msg": "audit_event", "audit_id": uuid::Uuid::new_v4().to_string(),
        "type": type_, "logged_at": now, "source": source,
        "subjects": {"user_id": subject, "user": user.as_deref().unwrap_or("anonymous")}, "target": target,
    });
    match entry {
        Value::Object(entry) => entry,
        _ => Map::new(),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn text_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
}

fn event_type(exchange: &Exchange) -> &'static str {
    let Some(message) = &exchange.message else {
        let listens = exchange.method == Method::GET
            && text(&exchange.headers, header::ACCEPT.as_str()).contains("text/event-stream");
        return if listens { "sse_connection" } else { "http_request" };
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
        name if name.starts_with("notifications/") => "mcp_notification",
        _ => "mcp_request",
    }
}

fn target_type(event: &str) -> &'static str {
    match event {
        "mcp_tool_call" => "tool",
        "mcp_resource_read" => "resource",
        "mcp_prompt_get" => "prompt",
        "sse_connection" => "sse_endpoint",
        _ => "endpoint",
    }
}

/// How it ended. A call may fail although the HTTP status is 200.
fn outcome(config: &run_config::Audit, end: &Ended) -> &'static str {
    match end.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "denied",
        status if status.is_client_error() => "failure",
        status if status.is_server_error() => "error",
        _ if config.detect_application_errors() && is_error(end) => "application_error",
        _ => "success",
    }
}

fn is_error(end: &Ended) -> bool {
    let whole = end.bytes == end.prefix.len() as u64;
    let envelope = if whole { Envelope::parse(&end.prefix).ok() } else { None };
    envelope.is_some_and(|envelope| {
        matches!(envelope.message(), Message::Response { outcome: Outcome::Error(_), .. })
    })
}
