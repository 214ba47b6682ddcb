//! Logging: plain-text lines, each with the name of its server.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::dynamic_filter_fn,
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::{DefaultFields, Writer},
        layer,
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use super::screen::Screen;

/// The span of everything that a server and its proxy do. Its message is the server's name.
pub(super) const SERVER: &str = "server";
/// The span of tool discovery. Its errors are shown by the table.
pub(super) const DISCOVERY: &str = "discovery";

/// The level of what servers write to their standard error.
const OUTPUT: &str = "server=info";

/// Initializes the log. `RUST_LOG` overrides the level.
pub(super) fn init(verbose: bool, screen: &Screen) {
    let level = if verbose { "info" } else { "warn" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    // The output of servers is what users look for, whatever the level of the proxies.
    let filter = match OUTPUT.parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    };
    let screen = screen.clone();
    let lines = layer().event_format(Lines).with_ansi(false).with_writer(move || screen.clone());
    let is_shown = dynamic_filter_fn(move |event, context| {
        let mut spans = context.lookup_current().into_iter().flat_map(|span| span.scope());
        verbose || event.is_span() || event.target() == SERVER || spans.all(|span| span.name() != DISCOVERY)
    });
    tracing_subscriber::registry().with(filter).with(lines.with_filter(is_shown)).init();
    skep_panics::report();
}

/// `[server] message`, with the level unless it is output of the server.
struct Lines;

impl<S> FormatEvent<S, DefaultFields> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, DefaultFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut spans = context.event_scope().into_iter().flat_map(|scope| scope.from_root());
        if let Some(span) = spans.find(|span| span.name() == SERVER) {
            let extensions = span.extensions();
            let name = extensions.get::<FormattedFields<DefaultFields>>().map(|name| name.as_str());
            write!(writer, "[{}] ", name.unwrap_or_default())?;
        }
        if event.metadata().target() != SERVER {
            let level = match *event.metadata().level() {
                Level::ERROR => "error",
                Level::WARN => "warning",
                Level::INFO => "info",
                _ => "debug",
            };
            write!(writer, "{level}: ")?;
        }
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
