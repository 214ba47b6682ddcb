//! Logging: one JSON object for each line, with the keys of ToolHive's logs for the proxy, or plain text.

use std::{env, fmt, io};

use serde_json::{Map, Value};
use skep_config::env::{DEBUG, UNSTRUCTURED_LOGS};
use tracing::{Event, Subscriber, field::Field};
use tracing_subscriber::{
    EnvFilter,
    field::Visit,
    fmt::{
        FmtContext, FormatEvent, FormattedFields,
        format::{JsonFields, Writer},
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

/// Whether the log level is debug, by the command line or the environment.
pub(crate) fn debug(flag: bool) -> bool {
    flag || is_on(env::var(DEBUG).ok().as_deref())
}

/// Initializes the log of the proxy, to standard error.
pub(crate) fn init(debug: bool) {
    let level = if debug { "debug" } else { "info" };
    let logs = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter(level));
    if is_plain_text() {
        logs.with_ansi(false).with_timer(TimeAndRequest).init();
    } else {
        logs.fmt_fields(JsonFields::new()).event_format(Lines).init();
    }
    skep_panics::report();
}

/// Initializes the log of the operator, to standard error.
pub(crate) fn init_operator() {
    let logs = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter("info"));
    if is_plain_text() {
        logs.with_ansi(false).init();
    } else {
        logs.json().init();
    }
    skep_panics::report();
}

/// The log filter. `RUST_LOG` overrides the level.
fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level))
}

fn is_plain_text() -> bool {
    is_on(env::var(UNSTRUCTURED_LOGS).ok().as_deref())
}

fn is_on(value: Option<&str>) -> bool {
    matches!(value, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// For plain text: the time and the request.
struct TimeAndRequest;

impl FormatTime for TimeAndRequest {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        SystemTime.format_time(writer)?;
        let about = skep_proxy::request_context();
        about
            .iter()
            .flat_map(|about| about.fields())
            .try_for_each(|(key, value)| write!(writer, " {key}={value}"))
    }
}

/// `time`, `level`, `msg`, and then the fields of the request and of the event.
struct Lines;

impl<S> FormatEvent<S, JsonFields> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut recorded = Fields::default();
        event.record(&mut recorded);
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let level = event.metadata().level().to_string();
        let mut line = Map::new();
        for (key, value) in [("time", time), ("level", level), ("msg", recorded.message)] {
            line.insert(key.into(), value.into());
        }
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>().map(|fields| fields.as_str());
            let fields = fields.and_then(|fields| serde_json::from_str(fields).ok());
            add(&mut line, fields.unwrap_or_default());
        }
        if let Some(about) = skep_proxy::request_context() {
            line.extend(about.fields().map(|(key, value)| (key.to_owned(), value.into())));
        }
        add(&mut line, recorded.fields);
        line.insert("target".into(), event.metadata().target().into());
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Adds fields. The first three keys are reserved.
fn add(line: &mut Map<String, Value>, fields: Map<String, Value>) {
    let own = |key: &str| ["time", "level", "msg"].contains(&key);
    line.extend(fields.into_iter().filter(|(key, _)| !own(key)));
}

/// The message and fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    fields: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" { self.message = text } else { self.put(field, text.into()) }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned()
        } else {
            self.put(field, value.into())
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}
