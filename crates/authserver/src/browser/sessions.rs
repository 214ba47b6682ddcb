//! The page about the sessions of a user.

use bytes::Bytes;
use http::Response;

use super::{
    connections::{duration, end_button, state},
    page::{document, escaped},
};
use crate::upstreams::Connection;

/// A session on the page.
pub(crate) struct SessionItem {
    pub(crate) id: String,
    /// The name of the client, which it chose itself.
    pub(crate) client: String,
    /// Proves that its form was on this page.
    pub(crate) token: String,
    pub(crate) connections: Vec<Connection>,
}

pub(crate) fn sessions_page(user: &str, sessions: &[SessionItem]) -> Response<Bytes> {
    let (user, sections) = (escaped(user), sessions.iter().map(section).collect::<String>());
    let text = match sessions {
        [] => "No application acts for you here.",
        _ => "These applications act for you, with your accounts at these providers.",
    };
    let body = format!(
        "<h1>Your sessions</h1><p>You are logged in as <strong>{user}</strong>. {text}</p>{sections}"
    );
    document("Your sessions", &body)
}

fn section(session: &SessionItem) -> String {
    let name = if session.client.is_empty() { "An application" } else { &session.client };
    let connections: String = session.connections.iter().map(connection).collect();
    let id: String = form_urlencoded::byte_serialize(session.id.as_bytes()).collect();
    let end = end_button(&session.id, &session.token);
    format!(
        r#"<section><h2>{}</h2><dl>{connections}</dl><form method="post" action="connections">{end}<a class="button" href="connections?session={id}">Connections</a></form></section>"#,
        escaped(name)
    )
}

fn connection(connection: &Connection) -> String {
    let (look, state) = state(connection);
    let (since, until) = duration(connection);
    let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
    let until = until.map(|until| format!(", until {until}")).unwrap_or_default();
    format!(r#"<dt>{}</dt><dd class="{look}">{state}{since}{until}</dd>"#, escaped(&connection.provider))
}
