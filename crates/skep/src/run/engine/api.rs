//! The Engine API: one connection for each request.

use std::{fmt, io, time::Duration};

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, client::conn::http1, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use super::endpoint::Endpoint;

/// The timeout of a request. Stopping a container takes long.
const TIME: Duration = Duration::from_secs(60);
/// The maximum size of a response.
const LONGEST: usize = 4 << 20;
/// The API version of an engine that does not report one.
const VERSION: &str = "1.41";

/// Why a request failed.
#[derive(Debug)]
pub(super) struct EngineError {
    pub(super) status: Option<StatusCode>,
    message: String,
}

impl EngineError {
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self { status: None, message: message.to_string() }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<EngineError> for io::Error {
    fn from(error: EngineError) -> Self {
        Self::other(error.message)
    }
}

/// A response whose body may still arrive. The connection would close with the sender, so it is kept.
pub(super) struct EngineResponse {
    response: Response<Incoming>,
    _sender: http1::SendRequest<Full<Bytes>>,
}

impl EngineResponse {
    /// The next part of the body, if there is one.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        match self.response.body_mut().frame().await {
            Some(frame) => Ok(Some(frame.map_err(EngineError::new)?.into_data().unwrap_or_default())),
            None => Ok(None),
        }
    }

    async fn whole(mut self) -> Result<Bytes, EngineError> {
        let reading = timeout(TIME, Limited::new(self.response.body_mut(), LONGEST).collect());
        let read = reading.await.map_err(|_| EngineError::new("the response does not end"))?;
        Ok(read.map_err(EngineError::new)?.to_bytes())
    }

    /// The error that the engine returned.
    async fn into_error(self) -> EngineError {
        let status = self.response.status();
        let body = self.whole().await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = body["message"].as_str().map(|message| message.trim().to_owned());
        EngineError { status: Some(status), message: message.unwrap_or_else(|| status.to_string()) }
    }
}

pub(super) struct EngineApi {
    endpoint: Endpoint,
    /// The prefix of paths: the engine's API version.
    prefix: String,
}

impl EngineApi {
    /// Pings the engine, and reads its API version.
    pub(super) async fn connect(endpoint: &Endpoint) -> Result<Self, EngineError> {
        let mut api = Self { endpoint: endpoint.clone(), prefix: String::new() };
        let pong = api.send(Method::GET, "/_ping", None).await?;
        let version = pong.response.headers().get("api-version").and_then(|version| version.to_str().ok());
        api.prefix = format!("/v{}", version.unwrap_or(VERSION));
        Ok(api)
    }

    pub(super) fn is_remote(&self) -> bool {
        self.endpoint.is_remote()
    }

    /// Sends a request, and returns the whole response.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, EngineError> {
        let response = self.send(method, path, body).await?;
        let bytes = response.whole().await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| EngineError::new("the response is not JSON"))
    }

    /// Sends a request, and returns the response as soon as it starts. An error status is an error.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<EngineResponse, EngineError> {
        self.successful(self.http_request(method, path, body)?).await
    }

    /// Sends a request to pull an image, with credentials of its registry if there are any.
    pub(super) async fn pull(&self, path: &str, auth: Option<&str>) -> Result<EngineResponse, EngineError> {
        let mut request = self.http_request(Method::POST, path, None)?;
        if let Some(auth) = auth {
            let auth = auth.parse().map_err(EngineError::new)?;
            request.headers_mut().insert("x-registry-auth", auth);
        }
        self.successful(request).await
    }

    async fn successful(&self, request: Request<Full<Bytes>>) -> Result<EngineResponse, EngineError> {
        let response = self.exchange(request).await?;
        if response.response.status().is_success() {
            return Ok(response);
        }
        Err(response.into_error().await)
    }

    /// Upgrades a connection to the raw streams of a container.
    pub(super) async fn upgrade(&self, path: &str) -> Result<TokioIo<Upgraded>, EngineError> {
        let mut request = self.http_request(Method::POST, path, None)?;
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("tcp"));
        let response = self.exchange(request).await?;
        if response.response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(response.into_error().await);
        }
        Ok(TokioIo::new(hyper::upgrade::on(response.response).await.map_err(EngineError::new)?))
    }

    fn http_request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, EngineError> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header(header::HOST, "engine")
            .header(header::CONTENT_TYPE, "application/json");
        request.body(Full::new(text.into())).map_err(EngineError::new)
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<EngineResponse, EngineError> {
        let exchange = async {
            let stream = connection(&self.endpoint).await.map_err(EngineError::new)?;
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(EngineError::new)?;
            tokio::spawn(connection.with_upgrades());
            let response = sender.send_request(request).await.map_err(EngineError::new)?;
            Ok(EngineResponse { response, _sender: sender })
        };
        timeout(TIME, exchange).await.map_err(|_| EngineError::new("timeout"))?
    }
}

/// A connection to an engine.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

async fn connection(endpoint: &Endpoint) -> io::Result<Box<dyn Connection>> {
    Ok(match endpoint {
        Endpoint::Socket(path) => Box::new(UnixStream::connect(path).await?),
        Endpoint::Tcp(address) => Box::new(TcpStream::connect(address).await?),
    })
}

/// The query of a URL.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}
