//! The audit log: who requested what, and how it ended.
//!
//! One line for each request, written when its response has ended; that of a stream when it starts. Bodies are written only
//! if the configuration enables it, and tokens never.

mod entry;
mod output;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use http::{StatusCode, header};
use serde_json::{Map, Value, json};
use skep_config::run_config::{self, AuditParameters, Transport};
use skep_gocompat::fold;

use super::oauth_events::{OAUTH_TYPES, OauthEvent};
use crate::{
    ConfigError,
    http::{Ended, Observer},
    message::Exchange,
};
use entry::{STREAM, TYPES, entry, error, event_type, oauth_entry, outcome, short, text, text_of};
use output::Output;

const COMPONENT: &str = "toolhive-api";
/// How much of a response is parsed for an error that its status does not show.
const PARSED_PREFIX: usize = 4096;

/// The audit log.
pub(crate) struct Audit(Arc<Log>);

struct Log {
    config: run_config::Audit,
    component: String,
    transport: Option<Transport>,
    /// Whether the headers of a proxy in front are trusted.
    trusts_headers: bool,
    output: Output,
}

impl Audit {
    pub(super) fn new(parameters: &AuditParameters, trusts_headers: bool) -> Result<Self, ConfigError> {
        let config = match &parameters.config_data {
            Some(config) => config.clone(),
            None => file(&parameters.config_path)?,
        };
        let named = config.event_types.iter().chain(&config.exclude_event_types);
        let is_known = |type_: &str| TYPES.contains(&type_) || OAUTH_TYPES.contains(&type_);
        if let Some(unknown) = named.into_iter().find(|type_| !is_known(type_)) {
            return Err(ConfigError::new(format!("audit: there is no event type {unknown:?}")));
        }
        let output: Box<dyn Write + Send> = match config.log_file.as_str() {
            "" => Box::new(io::stdout()),
            path => Box::new(open(path).map_err(|error| {
                ConfigError::new(format!("audit: cannot append to logFile {path:?}: {error}"))
            })?),
        };
        let output = Output::new(output)
            .map_err(|error| ConfigError::new(format!("audit: the log cannot be written: {error}")))?;
        let named = [&parameters.component, &config.component].into_iter().find(|name| !name.is_empty());
        let component = named.map_or(COMPONENT, String::as_str).to_owned();
        let transport = parameters.transport_type;
        Ok(Self(Arc::new(Log { config, component, transport, trusts_headers, output })))
    }

    /// The observer that writes the entry of the request when its response has ended. A stream may never end, so its
    /// entry is written when it starts.
    pub(super) fn observer(&self, exchange: &Exchange, status: StatusCode) -> Option<Box<dyn Observer>> {
        let record = self.record(exchange)?;
        if record.type_ == STREAM && status.is_success() {
            record.write_start(exchange);
            return None;
        }
        Some(Box::new(record))
    }

    /// Writes the entry of a request whose client disconnected before the response. What became of it is unknown.
    pub(super) fn abandoned(&self, exchange: &Exchange) {
        if let Some(record) = self.record(exchange) {
            record.write(None);
        }
    }

    /// What writes the entries of what happens at the authorization server.
    pub(super) fn oauth_events(&self) -> impl Fn(&OauthEvent<'_>) + Send + Sync + use<> {
        let log = self.0.clone();
        move |event| {
            if log.records(event.type_) {
                log.output.write(&oauth_entry(event, &log.component));
            }
        }
    }

    /// Waits until all entries have been written, within a limit.
    pub(super) async fn flush(&self) {
        self.0.output.flush().await;
    }

    fn record(&self, exchange: &Exchange) -> Option<Record> {
        let type_ = event_type(exchange);
        let config = &self.0.config;
        if !self.0.records(type_) {
            return None;
        }
        let limit = config.max_data_size() as usize;
        let data = config.include_request_data && exchange.body.len() <= limit;
        Some(Record {
            log: self.0.clone(),
            type_,
            started: exchange.started,
            entry: entry(exchange, type_, &self.0),
            backend: exchange.backend.get().cloned(),
            request: data.then(|| exchange.body.clone()),
        })
    }
}

impl Log {
    /// Whether events of this type are recorded.
    fn records(&self, type_: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == type_);
        let Self { config, .. } = self;
        !named(&config.exclude_event_types) && (config.event_types.is_empty() || named(&config.event_types))
    }
}

/// The settings in a file. Without one, they are the defaults.
fn file(path: &str) -> Result<run_config::Audit, ConfigError> {
    if path.is_empty() {
        return Ok(run_config::Audit::default());
    }
    let wrong =
        |error: &dyn std::fmt::Display| ConfigError::new(format!("audit: config_path: {path}: {error}"));
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    fold::from_str(&text).map_err(|error| wrong(&error))
}

/// Readable by the owner of the log alone.
fn open(path: &str) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// A request whose response is in flight.
struct Record {
    log: Arc<Log>,
    type_: &'static str,
    started: Instant,
    entry: Map<String, Value>,
    backend: Option<Arc<str>>,
    request: Option<Bytes>,
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
        let mut extra = Map::new();
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        extra.insert("duration_ms".into(), millis.into());
        let transport = if self.log.transport == Some(Transport::Sse) { "sse" } else { "http" };
        extra.insert("transport".into(), transport.into());
        if let Some(backend) = &self.backend {
            extra.insert("backend_name".into(), (**backend).into());
        }
        match end {
            Some(end) if end.bytes > 0 => extra.insert("response_size_bytes".into(), end.bytes.into()),
            Some(_) => None,
            None => extra.insert("client_disconnected".into(), true.into()),
        };
        let error = end.filter(|_| self.log.config.detect_application_errors()).and_then(error);
        let outcome = end.map_or("failure", |end| outcome(end.status, error.is_some()));
        if let Some(error) = error.filter(|_| outcome == "application_error") {
            extra.insert("jsonrpc_error_code".into(), error.code.into());
            extra.insert("jsonrpc_error_message".into(), error.message.into());
        }
        let log = self.log.clone();
        let is_small = |end: &&Ended| end.bytes <= u64::from(log.config.max_data_size());
        let response = end.filter(|_| log.config.include_response_data).filter(is_small);
        self.finish(outcome, extra, response.map(|end| text_of(&end.prefix)));
    }

    /// Writes the entry of a stream that starts.
    fn write_start(self, exchange: &Exchange) {
        let transport = self.log.transport.map_or("", |transport| transport.as_str());
        let agent = text(&exchange.headers, header::USER_AGENT.as_str());
        let extra = json!({"transport": transport, "user_agent": short(agent)});
        self.finish("success", extra.as_object().cloned().unwrap_or_default(), None);
    }

    fn finish(self, outcome: &str, extra: Map<String, Value>, response: Option<Value>) {
        let Self { log, mut entry, request, .. } = self;
        entry.insert("outcome".into(), outcome.into());
        entry.insert("component".into(), log.component.clone().into());
        entry.insert("metadata".into(), json!({"extra": extra}));
        if request.is_some() || response.is_some() {
            let request = request.map(|body| text_of(&body));
            entry.insert("data".into(), json!({"request": request, "response": response}));
        }
        log.output.write(&Value::Object(entry));
    }
}
