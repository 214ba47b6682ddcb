//! What is logged: one JSON object for each line, of the proxy by the keys that collectors of ToolHive's logs look for, or
//! lines for people.

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

/// Whether more is to be told: because the command line says so, or the environment.
pub(crate) fn debug(flag: bool) -> bool {
    flag || is_on(env::var(DEBUG).ok().as_deref())
}

/// The proxy begins to log, to standard error.
pub(crate) fn init(debug: bool) {
    let level = if debug { "debug" } else { "info" };
    let logs = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter(level));
    if for_people() {
        logs.with_ansi(false).with_timer(TimeAndRequest).init();
    } else {
        logs.fmt_fields(JsonFields::new()).event_format(Lines).init();
    }
}

/// The operator begins to log, to standard error.
pub(crate) fn init_operator() {
    let logs = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter("info"));
    if for_people() {
        logs.with_ansi(false).init();
    } else {
        logs.json().init();
    }
}

/// What is told. `RUST_LOG` goes over the level.
fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level))
}

fn for_people() -> bool {
    is_on(env::var(UNSTRUCTURED_LOGS).ok().as_deref())
}

fn is_on(value: Option<&str>) -> bool {
    matches!(value, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// For people: when, and for which request.
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

/// `time`, `level`, `msg`, and then what is told: of the request that it is about, and of what happened.
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
        let mut told = Told::default();
        event.record(&mut told);
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let level = event.metadata().level().to_string();
        let mut line = Map::new();
        for (key, value) in [("time", time), ("level", level), ("msg", told.message)] {
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
        add(&mut line, told.fields);
        line.insert("target".into(), event.metadata().target().into());
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Adds fields. The first three keys are the line's own.
fn add(line: &mut Map<String, Value>, fields: Map<String, Value>) {
    let own = |key: &str| ["time", "level", "msg"].contains(&key);
    line.extend(fields.into_iter().filter(|(key, _)| !own(key)));
}

/// What an event tells.
#[derive(Default)]
struct Told {
    message: String,
    fields: Map<String, Value>,
}

impl Told {
    fn put(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Told {
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
