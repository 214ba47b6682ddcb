//! The page about the connections of a session.

use bytes::Bytes;
use http::Response;

use super::page::{document, escaped, hidden};
use crate::upstreams::Connection;

/// What the page shows, and what its forms carry.
pub(crate) struct ConnectionForm<'a> {
    pub(crate) user: &'a str,
    /// The name of the client, which it chose itself.
    pub(crate) client: &'a str,
    pub(crate) session: &'a str,
    /// Proves that a form was on this page.
    pub(crate) token: String,
    pub(crate) connections: &'a [Connection],
}

pub(crate) fn connections_page(form: &ConnectionForm<'_>) -> Response<Bytes> {
    let sections: String = form.connections.iter().map(|connection| section(form, connection)).collect();
    let client = if form.client.is_empty() { "An application" } else { form.client };
    let end = end_button(form.session, &form.token);
    let body = format!(
        r#"<h1>Your connections</h1><p>You are logged in as <strong>{}</strong>. <strong>{}</strong> acts for you at these providers.</p>{sections}<form class="last" method="post" action="connections">{end}<a class="button" href="connections">All your sessions</a></form>"#,
        escaped(form.user),
        escaped(client)
    );
    document("Your connections", &body)
}

/// The state of a connection, and how it looks.
pub(super) fn state(connection: &Connection) -> (&'static str, &'static str) {
    match (connection.connected, connection.expired) {
        (false, _) => ("quiet", "not connected"),
        (true, true) => ("bad", "expired: connect it again"),
        (true, false) => ("good", "connected"),
    }
}

/// Since when a connection that can be used is there, and until when, as far as that is known.
pub(super) fn duration(connection: &Connection) -> (Option<String>, Option<String>) {
    if !connection.connected || connection.expired {
        return (None, None);
    }
    let until = connection.expires_at.map(|until| {
        let renewed = if connection.renewed { ", then renewed" } else { "" };
        format!("{}{renewed}", time(until, "%Y-%m-%d %H:%M UTC"))
    });
    (connection.since.map(|since| time(since, "%Y-%m-%d")), until)
}

/// What ends a session, in a form.
pub(super) fn end_button(session: &str, token: &str) -> String {
    let hidden = hidden(&[("session", session), ("token", token)]);
    format!(r#"{hidden}<button name="action" value="end">End session</button>"#)
}

fn section(form: &ConnectionForm<'_>, connection: &Connection) -> String {
    let (look, state) = state(connection);
    let (since, until) = duration(connection);
    let item = |name: &str, text: Option<String>| {
        text.map(|text| format!("<dt>{name}</dt><dd>{}</dd>", escaped(&text))).unwrap_or_default()
    };
    let (since, until) = (item("Since", since), item("Until", until));
    let scopes = Some(connection.scopes.join(", ")).filter(|scopes| !scopes.is_empty());
    let scopes = item("Permissions", scopes);
    let hidden =
        hidden(&[("session", form.session), ("provider", &connection.provider), ("token", &form.token)]);
    let (class, connect) = match connection.connected && !connection.expired {
        true => ("", "Connect again"),
        false => (r#" class="first""#, "Connect"),
    };
    let disconnect = match connection.connected {
        true => r#"<button name="action" value="disconnect">Disconnect</button>"#,
        false => "",
    };
    format!(
        r#"<section><h2>{}</h2><dl><dt>State</dt><dd class="{look}">{state}</dd>{since}{until}{scopes}</dl><form method="post" action="connections">{hidden}{disconnect}<button{class} name="action" value="connect">{connect}</button></form></section>"#,
        escaped(&connection.provider)
    )
}

/// A time in UTC.
fn time(seconds: u64, format: &str) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map(|time| time.strftime(format).to_string()).unwrap_or_default()
}
