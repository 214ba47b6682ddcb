//! The page about the connections of a session.

use bytes::Bytes;
use http::Response;

use super::page::{document, escaped};
use crate::upstreams::Connection;

/// What the page shows, and what its forms carry.
pub(crate) struct ConnectionForm<'a> {
    pub(crate) user: &'a str,
    pub(crate) session: &'a str,
    /// Proves that a form was on this page.
    pub(crate) token: String,
    pub(crate) connections: &'a [Connection],
}

pub(crate) fn connections_page(form: &ConnectionForm<'_>) -> Response<Bytes> {
    let sections: String = form.connections.iter().map(|connection| section(form, connection)).collect();
    let body = format!(
        "<h1>Your connections</h1><p>You are logged in as <strong>{}</strong>. Tools act for you at these providers.</p>{sections}",
        escaped(form.user)
    );
    document("Your connections", &body)
}

fn section(form: &ConnectionForm<'_>, connection: &Connection) -> String {
    let (look, state) = match (connection.connected, connection.expired) {
        (false, _) => ("quiet", "not connected"),
        (true, true) => ("bad", "expired: connect it again"),
        (true, false) => ("good", "connected"),
    };
    let since = match connection.since {
        Some(since) if connection.connected => format!("<dt>Since</dt><dd>{}</dd>", date(since)),
        _ => String::new(),
    };
    let scopes = match connection.scopes.as_slice() {
        [] => String::new(),
        scopes => format!("<dt>Permissions</dt><dd>{}</dd>", escaped(&scopes.join(", "))),
    };
    let hidden = |name: &str, value: &str| {
        format!(r#"<input type="hidden" name="{name}" value="{}">"#, escaped(value))
    };
    let fields = [("session", form.session), ("provider", &connection.provider), ("token", &form.token)];
    let fields: String = fields.iter().map(|(name, value)| hidden(name, value)).collect();
    let disconnect = match connection.connected {
        true => r#"<button name="action" value="disconnect">Disconnect</button>"#,
        false => "",
    };
    let (class, connect) = match connection.connected && !connection.expired {
        true => ("", "Connect again"),
        false => (r#" class="first""#, "Connect"),
    };
    format!(
        r#"<section><h2>{}</h2><dl><dt>State</dt><dd class="{look}">{state}</dd>{since}{scopes}</dl><form method="post" action="connections">{fields}{disconnect}<button{class} name="action" value="connect">{connect}</button></form></section>"#,
        escaped(&connection.provider)
    )
}

/// The day of a time, in UTC.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map(|time| time.strftime("%Y-%m-%d").to_string()).unwrap_or_default()
}
