//! The Engine API over its socket: one connection for each request.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, client::conn::http1, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::UnixStream, time::timeout};

/// How long an answer may take. Stopping a container is one that waits.
const TIME: Duration = Duration::from_secs(60);
/// How much of an answer is read.
const LONGEST: usize = 4 << 20;
/// The version of the API that an engine speaks which does not say it.
const VERSION: &str = "1.41";

/// Why there is no answer, or not the one that was hoped for.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: Option<StatusCode>,
    message: String,
}

impl Problem {
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self { status: None, message: message.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<Problem> for io::Error {
    fn from(problem: Problem) -> Self {
        Self::other(problem.message)
    }
}

/// An answer that has begun. Its connection would end with the sender, before the answer does.
pub(super) struct Answer {
    response: Response<Incoming>,
    _sender: http1::SendRequest<Full<Bytes>>,
}

impl Answer {
    /// What comes next of it, if something does.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        match self.response.body_mut().frame().await {
            Some(frame) => Ok(Some(frame.map_err(Problem::new)?.into_data().unwrap_or_default())),
            None => Ok(None),
        }
    }

    async fn whole(mut self) -> Result<Bytes, Problem> {
        let reading = timeout(TIME, Limited::new(self.response.body_mut(), LONGEST).collect());
        let read = reading.await.map_err(|_| Problem::new("its answer does not end"))?;
        Ok(read.map_err(Problem::new)?.to_bytes())
    }

    /// What an engine says when it does not want to.
    async fn refusal(self) -> Problem {
        let status = self.response.status();
        let said = self.whole().await.unwrap_or_default();
        let said: Value = serde_json::from_slice(&said).unwrap_or_default();
        let message = said["message"].as_str().map(|message| message.trim().to_owned());
        Problem { status: Some(status), message: message.unwrap_or_else(|| status.to_string()) }
    }
}

pub(super) struct Wire {
    socket: PathBuf,
    /// What paths begin with: the version of the API that the engine has.
    prefix: String,
}

impl Wire {
    /// Asks the engine whether it is there, and which version it speaks.
    pub(super) async fn connect(socket: &Path) -> Result<Self, Problem> {
        let mut wire = Self { socket: socket.to_owned(), prefix: String::new() };
        let pong = wire.sent(Method::GET, "/_ping", None).await?;
        let version = pong.response.headers().get("api-version").and_then(|version| version.to_str().ok());
        wire.prefix = format!("/v{}", version.unwrap_or(VERSION));
        Ok(wire)
    }

    /// The answer to a request, whole.
    pub(super) async fn asked(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Problem> {
        let answer = self.sent(method, path, body).await?;
        let bytes = answer.whole().await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| Problem::new("its answer is not JSON"))
    }

    /// The answer to a request that went well, as soon as it begins.
    pub(super) async fn sent(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Problem> {
        let answer = self.exchanged(self.request(method, path, body)?).await?;
        if answer.response.status().is_success() {
            return Ok(answer);
        }
        Err(answer.refusal().await)
    }

    /// A connection that is no more HTTP: what is written to it and read from it is the container's.
    pub(super) async fn upgraded(&self, path: &str) -> Result<TokioIo<Upgraded>, Problem> {
        let mut request = self.request(Method::POST, path, None)?;
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("tcp"));
        let answer = self.exchanged(request).await?;
        if answer.response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(answer.refusal().await);
        }
        Ok(TokioIo::new(hyper::upgrade::on(answer.response).await.map_err(Problem::new)?))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, Problem> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header(header::HOST, "engine")
            .header(header::CONTENT_TYPE, "application/json");
        request.body(Full::new(text.into())).map_err(Problem::new)
    }

    async fn exchanged(&self, request: Request<Full<Bytes>>) -> Result<Answer, Problem> {
        let exchange = async {
            let stream = UnixStream::connect(&self.socket).await.map_err(Problem::new)?;
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(Problem::new)?;
            tokio::spawn(connection.with_upgrades());
            let response = sender.send_request(request).await.map_err(Problem::new)?;
            Ok(Answer { response, _sender: sender })
        };
        timeout(TIME, exchange).await.map_err(|_| Problem::new("it does not answer in time"))?
    }
}

/// The part of an address after its question mark.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}
