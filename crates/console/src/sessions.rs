//! The sessions of users at authorization servers, and the clients that have registered there.
//!
//! Both are for users whom the API server allows to `get` or `delete` the subresource `sessions` of an object.
//! An object that they may not see does not exist for them.

use http::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use skep_gateway::{http::Body, limits::ADMINISTRATION_PARAMETER};
use tracing::info;

use crate::{
    Console, Endpoint, Key,
    access::{SessionRight, Viewer},
    cluster::{Administrator, Failure, Selection},
    objects::Object,
    responses::{error, json_of, not_found},
};

const UNAVAILABLE: &str = "this console does not administer sessions: kubectl skep sessions does";

/// The response of an endpoint; `object` is the rest of the path.
pub(crate) async fn respond<B>(
    console: &Console,
    viewer: &Viewer,
    endpoint: Endpoint,
    object: &str,
    request: &Request<B>,
) -> Response<Body> {
    let right = match (endpoint, request.method()) {
        (Endpoint::Sessions, &Method::GET) => return servers(console, viewer).await,
        (Endpoint::Sessions, _) => return error(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET"),
        (_, &Method::GET) => SessionRight::List,
        (_, &Method::DELETE) => SessionRight::End,
        _ => return error(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET or DELETE"),
    };
    let Some(object) = Key::in_path(object).and_then(|key| console.objects.find(&key)) else {
        return not_found();
    };
    if !viewer.may_see(&object.key).await {
        return not_found();
    }
    if !viewer.may_administer(&object.key, right).await {
        return error(StatusCode::FORBIDDEN, right.missing());
    }
    let Some(administrator) = &console.administrator else {
        return error(StatusCode::CONFLICT, UNAVAILABLE);
    };
    let query = request.uri().query().unwrap_or_default();
    let action = match Action::of(endpoint, right, query) {
        Ok(action) => action,
        Err(message) => return error(StatusCode::BAD_REQUEST, message),
    };
    let Some(_place) = console.administrations.take_for(viewer.name().to_owned()) else {
        return error(StatusCode::SERVICE_UNAVAILABLE, "too many requests about sessions are in flight");
    };
    match administer(administrator, viewer, &object, &action).await {
        Ok(response) => response,
        Err(failure) => error(status(failure), &failure.to_string()),
    }
}

/// A server with an authorization server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Server<'a> {
    #[serde(flatten)]
    key: &'a Key,
    may_list: bool,
    may_end: bool,
}

/// Lists the servers with an authorization server, and what the viewer may do there.
async fn servers(console: &Console, viewer: &Viewer) -> Response<Body> {
    let mut servers = Vec::new();
    let is_available = console.administrator.is_some();
    let visible = if is_available { viewer.visible(console.objects.all()).await } else { Vec::new() };
    for object in visible.iter().filter(|object| console.objects.has_authorization_server(object)) {
        servers.push(Server {
            key: &object.key,
            may_list: viewer.may_administer(&object.key, SessionRight::List).await,
            may_end: viewer.may_administer(&object.key, SessionRight::End).await,
        });
    }
    json_of(&json!({"isAvailable": is_available, "servers": servers}))
}

/// An action of an administrator.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    List(Selection),
    ListClients,
    End(Selection),
    /// Forget the client with this id.
    Forget(String),
}

impl Action {
    fn of(endpoint: Endpoint, right: SessionRight, query: &str) -> Result<Self, &'static str> {
        let which = selection(query).ok_or("session, user and client may be given, each once")?;
        match (endpoint, right) {
            (Endpoint::ClientsOf, SessionRight::List) if which == Selection::default() => {
                Ok(Self::ListClients)
            }
            (Endpoint::ClientsOf, SessionRight::List) => Err("clients are listed without parameters"),
            (Endpoint::ClientsOf, SessionRight::End) => match which {
                Selection { client: Some(client), session: None, user: None } => Ok(Self::Forget(client)),
                _ => Err("client must be given, and nothing else"),
            },
            (_, SessionRight::List) => Ok(Self::List(which)),
            // All sessions do not end because a parameter is missing.
            (_, SessionRight::End) if which == Selection::default() => {
                Err("one of session, user and client must be given")
            }
            (_, SessionRight::End) => Ok(Self::End(which)),
        }
    }
}

async fn administer(
    administrator: &Administrator,
    viewer: &Viewer,
    object: &Object,
    action: &Action,
) -> Result<Response<Body>, Failure> {
    let ended = match action {
        Action::List(which) => return Ok(json_of(&administrator.sessions(object, which).await?)),
        Action::ListClients => return Ok(json_of(&administrator.clients(object).await?)),
        Action::End(which) => administrator.end_sessions(object, which).await,
        Action::Forget(client) => administrator.forget_client(object, client).await,
    };
    // A failed one may have ended some.
    let Key { kind, namespace, name } = &object.key;
    info!(
        user = viewer.name(),
        kind,
        namespace,
        name,
        ?action,
        ?ended,
        "a user of the console ends sessions"
    );
    Ok(json_of(&json!({"ended": ended?})))
}

/// The sessions that a query selects. None if it has anything else: that may have been meant to select fewer.
fn selection(query: &str) -> Option<Selection> {
    let mut selection = Selection::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let member = match &*name {
            "session" => &mut selection.session,
            "user" => &mut selection.user,
            "client" => &mut selection.client,
            _ => return None,
        };
        let is_valid = !value.is_empty() && value.len() <= ADMINISTRATION_PARAMETER;
        if !is_valid || member.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    Some(selection)
}

fn status(failure: Failure) -> StatusCode {
    match failure {
        Failure::NoPod | Failure::Unsupported => StatusCode::CONFLICT,
        Failure::NoToken | Failure::Unreachable | Failure::Denied => StatusCode::BAD_GATEWAY,
        Failure::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Failure::TooSlow => StatusCode::GATEWAY_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_selects_nothing_by_mistake() {
        let end = |query: &str| Action::of(Endpoint::SessionsOf, SessionRight::End, query);
        let client = Some("c d".to_owned());
        let both = Selection { user: Some("ann@example.test".into()), client, session: None };
        assert_eq!(end("user=ann%40example.test&client=c+d"), Ok(Action::End(both)));
        let list = Action::of(Endpoint::SessionsOf, SessionRight::List, "");
        assert_eq!(list, Ok(Action::List(Selection::default())));
        let long = format!("user={}", "x".repeat(ADMINISTRATION_PARAMETER + 1));
        for query in ["", "user=", "usr=ann&client=c", "user=a&user=b", "from=7", "client", &long] {
            assert!(end(query).is_err(), "{query}");
        }
        let forget = |query: &str| Action::of(Endpoint::ClientsOf, SessionRight::End, query);
        assert_eq!(forget("client=c"), Ok(Action::Forget("c".into())));
        for query in ["", "user=ann", "client=c&user=ann", "client=c&session=s"] {
            assert!(forget(query).is_err(), "{query}");
        }
    }
}
