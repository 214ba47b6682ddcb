//! The MCP endpoints of servers: the page calls tools like any other client, through the proxy.

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyDataStream, Full};
use hyper::body::Incoming;
use skep_gateway::{
    body,
    http::{Body, BodyError},
    outbound::UpstreamBody,
};
use tokio::sync::OwnedSemaphorePermit;
use tracing::debug;

use crate::{
    Console, Key,
    access::Viewer,
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
/// What a server sends. Its cookies and policies are not those of the console.
const RESPONSE: [HeaderName; 4] = [
    header::CONTENT_TYPE,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("mcp-session-id"),
];

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
    let Ok(place) = console.requests.clone().try_acquire_owned() else {
        return error(StatusCode::SERVICE_UNAVAILABLE, "too many requests are in flight");
    };
    let body = match tokio::time::timeout(limits::BODY_TIME, body::read(body, limits::MESSAGE)).await {
        Ok(Ok(body)) => body,
        Ok(Err(body::ReadError::TooLarge)) => {
            return error(StatusCode::PAYLOAD_TOO_LARGE, "the message is too large");
        }
        Ok(Err(_)) | Err(_) => return error(StatusCode::BAD_REQUEST, "the message did not arrive"),
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
            let mut response = Response::new(Body::Made(held(body, place)));
            *response.status_mut() = head.status;
            *response.headers_mut() = selected(&head.headers, &RESPONSE);
            response
        }
        Err(failure) => {
            debug!(error = %failure, "a request of the console failed");
            error(StatusCode::BAD_GATEWAY, "the server does not respond")
        }
    }
}

/// The body, which keeps its place until it ends.
fn held(body: UpstreamBody, place: OwnedSemaphorePermit) -> BoxStream<'static, Result<Bytes, BodyError>> {
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
