//! The identity provider: every code is of a user, whose token it returns.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

/// Prints its address, and serves for ever.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)));
    }
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() != "/token" {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    }
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let code =
        form_urlencoded::parse(&body).find(|(name, _)| name == "code").map(|(_, value)| value.into_owned());
    let user = code.unwrap_or_default();
    let token = json!({
        "access_token": format!("access-of-{user}"), "refresh_token": format!("refresh-of-{user}"),
        "token_type": "Bearer", "expires_in": 3600, "who": user,
    });
    let mut response = Response::new(Full::from(token.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Ok(response)
}
