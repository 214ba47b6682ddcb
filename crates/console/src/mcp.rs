//! The MCP endpoints of servers: the page calls tools like any other client, through the proxy.

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyDataStream, Full};
use hyper::body::Incoming;
use skep_auth::Place;
use skep_gateway::{
    body::{self, CountedBytes},
    http::{Body, BodyError},
    outbound::UpstreamBody,
};
use tracing::debug;

use crate::{
    Console, Key,
    access::{self, Viewer},
    limits,
    objects::Object,
    responses::{error, not_found},
};

/// The access token for the server: `Authorization` is that of the console.
const SERVER_AUTHORIZATION: HeaderName = HeaderName::from_static("x-skep-authorization");
/// The path of an endpoint of streamable HTTP.
const PATH: &str = "/mcp";
/// The kind whose only transport is streamable HTTP.
const VIRTUAL: &str = "VirtualMCPServer";
/// The type of what is shown as it is.
const TEXT: &str = "text/plain; charset=utf-8";
const BUSY: &str = "too many requests are in flight";
const NO_ADDRESS: &str =
    "the server has no address for clients of streamable HTTP, or no pod behind its own Service";
/// What a client of MCP sends.
const REQUEST: [HeaderName; 7] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-session-id"),
];
/// What a server sends. Its cookies and policies are not those of the console, and its challenge would open the browser's own sign-in
/// dialog in the name of the console.
const RESPONSE: [HeaderName; 2] = [header::RETRY_AFTER, HeaderName::from_static("mcp-session-id")];
/// The types of messages. A browser shows anything else with the rights of the console's page, or runs it.
const MESSAGES: [&str; 2] = ["application/json", "text/event-stream"];

/// Forwards a request to the endpoint of this object.
pub(crate) async fn forward(
    console: &Console,
    viewer: &Viewer,
    object: &str,
    request: Request<Incoming>,
) -> Response<Body> {
    let Some(object) = Key::in_path(object).and_then(|key| console.objects.find(&key)) else {
        return not_found();
    };
    if !viewer.may_see(&object.key).await {
        return not_found();
    }
    let (head, body) = request.into_parts();
    if !matches!(head.method, Method::GET | Method::POST | Method::DELETE) {
        return error(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET, POST or DELETE");
    }
    // Also of a GET: what a server sends must not be opened as a page.
    if !head.headers.contains_key(access::CONSOLE) {
        return error(StatusCode::FORBIDDEN, "only the page of this console may send this request");
    }
    let Some(place) = console.requests.take_for(viewer.name().to_owned()) else {
        return error(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    };
    let reading = body::read_counted(body, limits::MESSAGE, &console.messages);
    let body = match tokio::time::timeout(limits::BODY_TIME, reading).await {
        Ok(Ok((body, share))) => CountedBytes::new(body, share).into_bytes(),
        Ok(Err(body::ReadError::TooLarge)) => {
            return error(StatusCode::PAYLOAD_TOO_LARGE, "the message is too large");
        }
        Ok(Err(body::ReadError::Exhausted)) => return error(StatusCode::SERVICE_UNAVAILABLE, BUSY),
        Ok(Err(body::ReadError::Broken)) | Err(_) => {
            return error(StatusCode::BAD_REQUEST, "the message did not arrive");
        }
    };
    let Some(uri) = address(console, viewer, &object).await else {
        return error(StatusCode::CONFLICT, NO_ADDRESS);
    };
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = head.method;
    *request.headers_mut() = request_headers(&head.headers);
    *request.uri_mut() = uri;
    // A redirect would lead to where the server wants.
    match console.client.send_once(request).await {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let Some(type_) = content_type(head.status, &head.headers) else {
                return error(
                    StatusCode::BAD_GATEWAY,
                    "the server's response is neither JSON nor an event stream",
                );
            };
            let mut response = Response::new(Body::Made(held(body, place)));
            *response.status_mut() = head.status;
            *response.headers_mut() = selected(&head.headers, &RESPONSE);
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(type_));
            response
        }
        Err(failure) => {
            debug!(error = %failure, "a request of the console failed");
            error(StatusCode::BAD_GATEWAY, "the server does not respond")
        }
    }
}

/// The type with which the page gets a response: that of a message, or text for what a server says about an error. None for a result that
/// is no message.
fn content_type(status: StatusCode, headers: &HeaderMap) -> Option<&'static str> {
    let Some(type_) = headers.get(header::CONTENT_TYPE) else { return Some(TEXT) };
    let name = type_.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let message = MESSAGES.into_iter().find(|message| message.eq_ignore_ascii_case(name));
    message.or_else(|| (!status.is_success()).then_some(TEXT))
}

/// The body, which keeps its place until it ends.
fn held(body: UpstreamBody, place: Place<String>) -> BoxStream<'static, Result<Bytes, BodyError>> {
    let pieces = BodyDataStream::new(body).map(move |piece| {
        let _ = &place;
        piece.map_err(BodyError::from)
    });
    pieces.boxed()
}

/// Where requests for this object go, if it has an endpoint of streamable HTTP. A status could name any address: so it must be
/// on this machine or, in a cluster, that of a Service of the object, behind which a pod is connected to.
async fn address(console: &Console, viewer: &Viewer, object: &Object) -> Option<Uri> {
    let uri: Uri = object.summary.url.parse().ok()?;
    // The status of a virtual server has no path, as ToolHive's has none.
    let has_path = uri.path() == PATH || (object.key.kind == VIRTUAL && uri.path() == "/");
    if uri.scheme_str() != Some("http") || !has_path {
        return None;
    }
    match viewer {
        Viewer::Local => (uri.host()? == "127.0.0.1").then_some(uri),
        Viewer::User(_) => {
            let pod = console.services.as_ref()?.pod(object, &uri).await?;
            format!("http://{pod}{PATH}").parse().ok()
        }
    }
}

fn request_headers(headers: &HeaderMap) -> HeaderMap {
    let mut sent = selected(headers, &REQUEST);
    if let Some(token) = headers.get(SERVER_AUTHORIZATION) {
        sent.insert(header::AUTHORIZATION, token.clone());
    }
    sent
}

fn selected(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let pairs = names.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{Access, LocalAccess, Objects};

    #[tokio::test]
    async fn requests_go_to_servers_of_this_machine_only() {
        let objects = Arc::new(Objects::default());
        let access = Access::Local(LocalAccess::new(1).unwrap());
        let console = Console::new(objects.clone(), Arc::default(), access).unwrap();
        let local = async |url: &str| {
            objects.apply(json!({"kind": "MCPServer", "metadata": {"name": "a"}, "status": {"url": url}}));
            let object = objects.find(&Key::new("MCPServer", "", "a")).unwrap();
            address(&console, &Viewer::Local, &object).await
        };
        assert!(local("http://127.0.0.1:4001/mcp").await.is_some());
        for url in
            ["http://169.254.169.254/mcp", "https://127.0.0.1/mcp", "http://127.0.0.1:4001/sse", "", "/mcp"]
        {
            assert!(local(url).await.is_none(), "{url}");
        }
    }

    #[test]
    fn a_browser_gets_messages_and_text_of_a_server_and_nothing_that_it_would_run() {
        let type_of = |status: u16, type_: &str| {
            let headers = [(header::CONTENT_TYPE, HeaderValue::from_str(type_).unwrap())];
            content_type(StatusCode::from_u16(status).unwrap(), &HeaderMap::from_iter(headers))
        };
        assert_eq!(type_of(200, "Application/JSON; charset=utf-7"), Some("application/json"));
        assert_eq!(type_of(200, "text/event-stream"), Some("text/event-stream"));
        assert_eq!(content_type(StatusCode::ACCEPTED, &HeaderMap::new()), Some(TEXT));
        for type_ in [
            "text/html",
            "image/svg+xml",
            "application/xhtml+xml",
            "text/xml",
            "",
            "text/html, application/json",
        ] {
            assert_eq!(type_of(200, type_), None, "{type_}");
            assert_eq!(type_of(404, type_), Some(TEXT), "{type_}");
        }
    }

    #[test]
    fn the_token_of_the_console_does_not_reach_a_server() {
        let headers = [
            (header::AUTHORIZATION, "Bearer console"),
            (header::COOKIE, "a=b"),
            (header::ACCEPT, "application/json"),
        ];
        let headers: HeaderMap =
            headers.into_iter().map(|(name, value)| (name, value.parse().unwrap())).collect();
        let sent = request_headers(&headers);
        assert_eq!(sent.keys().collect::<Vec<_>>(), [header::ACCEPT]);
        let mut headers = headers;
        headers.insert(SERVER_AUTHORIZATION, "Bearer server".parse().unwrap());
        assert_eq!(request_headers(&headers)[header::AUTHORIZATION], "Bearer server");
    }
}
