//! Restoring a session, where every request to the server is signed.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, uri::PathAndQuery};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use skep_config::{RunConfig, run_config::Transport};
use skep_gateway::{
    body::Budget,
    identity::Identity,
    message::{Exchange, ParsedMessage, SignRequest},
    middleware::{Chain, ChainContext},
    outbound::Target,
    sessions::Sessions,
};
use skep_mcp::Rejection;
use tokio::net::TcpListener;

use super::HttpServer;

/// A signature that is valid for one body: the body itself.
struct Body;

impl SignRequest for Body {
    fn sign(
        &self,
        _: (&Method, &PathAndQuery),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), Rejection> {
        headers.insert("x-signature", HeaderValue::from_bytes(body).unwrap());
        Ok(())
    }
}

/// A server that loses its first session. It returns the methods of the requests whose signature is valid.
async fn server() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let signed: Arc<Mutex<Vec<String>>> = Arc::default();
    let memory = signed.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let memory = memory.clone();
        async move {
            let headers = request.headers().clone();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let message: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let method = message["method"].as_str().unwrap().to_owned();
            let mut seen = memory.lock().unwrap();
            if headers["x-signature"].as_bytes() == body {
                seen.push(method.clone());
            }
            let starts = seen.iter().filter(|method| *method == "initialize").count();
            let is_lost = headers.get("mcp-session-id").is_some_and(|id| id == "s-1") && starts == 1;
            let response = match method.as_str() {
                "initialize" => Response::builder().header("mcp-session-id", format!("s-{starts}")),
                "tools/list" | "ping" if is_lost => Response::builder().status(StatusCode::NOT_FOUND),
                _ => Response::builder(),
            };
            response.body(Full::new(Bytes::from_static(b"{}")))
        }
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone()));
        }
    });
    (address, signed)
}

fn exchange(method: &str, session: Option<&str>) -> Exchange {
    let body = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#));
    let (mut head, ()) = Request::post("/mcp").body(()).unwrap().into_parts();
    if let Some(session) = session {
        head.headers.insert("mcp-session-id", session.parse().unwrap());
    }
    Body.sign((&Method::POST, &PathAndQuery::from_static("/mcp")), &mut head.headers, &body).unwrap();
    let mut exchange = Exchange::new(head, ([127, 0, 0, 1], 1).into(), &Budget::new(1 << 20));
    exchange.message = Some(ParsedMessage::of(&exchange.headers, &body).unwrap());
    exchange.body = body;
    exchange.caller.identity = Some(Arc::new(Identity { is_local: false, ..Identity::local() }));
    exchange.caller.signer = Some(Arc::new(Body));
    exchange
}

#[tokio::test]
async fn what_restores_a_session_has_its_own_signature() {
    let (address, signed) = server().await;
    let target = Target::remote(&format!("http://{address}/mcp"), Transport::StreamableHttp).unwrap();
    let sessions = Sessions::new(Duration::from_secs(60), None, "here").unwrap();
    let server = HttpServer::new(&RunConfig::default(), target, sessions, None).unwrap();
    let context = ChainContext {
        server: "s",
        host: "",
        remote_url: "",
        transport: Transport::StreamableHttp,
        trusts_proxy_headers: false,
        is_virtual: false,
        own_tools: &[],
        unauthenticated: skep_gateway::identity::Identity::local(),
        extras: skep_gateway::endpoint::Extras::default(),
        sessions: None,
    };
    let chain = Chain::new(&[], &context).unwrap();
    assert_eq!(server.send(&exchange("initialize", None), &chain).await.unwrap().status(), StatusCode::OK);
    let listed = server.send(&exchange("tools/list", Some("s-1")), &chain).await.unwrap();
    assert_eq!(listed.status(), StatusCode::OK);
    let expected =
        ["initialize", "tools/list", "ping", "initialize", "notifications/initialized", "tools/list"];
    assert_eq!(*signed.lock().unwrap(), expected);
}
