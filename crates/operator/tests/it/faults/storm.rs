//! A proxy that imitates an overloaded API server: it rejects some writes as such a server would, and forwards the
//! rest to the real one.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config, client::Body};
use serde_json::json;
use skep_testkit::User;
use tokio::{net::TcpListener, task::JoinSet};
use tower::BoxError;

/// A write as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) path: String,
    /// How many came before it.
    pub(super) number: usize,
    /// When it came, since the first.
    pub(super) at: Duration,
    pub(super) rejected: Option<StatusCode>,
}

type Rule = Box<dyn Fn(&Write) -> Option<StatusCode> + Send + Sync>;

/// The storm, for as long as it is not dropped.
pub(super) struct Storm {
    address: SocketAddr,
    writes: Arc<Mutex<Vec<Write>>>,
    _serving: JoinSet<()>,
}

struct Front {
    behind: Client,
    rule: Rule,
    start: Mutex<Option<Instant>>,
    writes: Arc<Mutex<Vec<Write>>>,
}

impl Storm {
    /// A storm in front of this user's API server. The rule decides which writes are rejected, and how.
    pub(super) async fn start(
        user: &User,
        rule: impl Fn(&Write) -> Option<StatusCode> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let writes = Arc::<Mutex<Vec<Write>>>::default();
        let front = Front {
            behind: user.client(),
            rule: Box::new(rule),
            start: Mutex::default(),
            writes: writes.clone(),
        };
        let front = Arc::new(front);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let front = front.clone();
                let response = service_fn(move |request| {
                    let front = front.clone();
                    async move { front.response(request).await }
                });
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), response));
            }
        });
        Self { address, writes, _serving: serving }
    }

    /// The configuration of a client in the storm.
    pub(super) fn config(&self) -> Config {
        Config::new(format!("http://{}", self.address).parse().unwrap())
    }

    /// All writes until now.
    pub(super) fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }
}

impl Front {
    async fn response(&self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        if *request.method() != Method::GET {
            let rejected = self.note(request.uri().path());
            if let Some(code) = rejected {
                return Ok(rejection(code));
            }
        }
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(self.behind.send(Request::from_parts(head, body.into())).await?)
    }

    fn note(&self, path: &str) -> Option<StatusCode> {
        let at = self.start.lock().unwrap().get_or_insert_with(Instant::now).elapsed();
        let mut writes = self.writes.lock().unwrap();
        let mut write = Write { path: path.into(), number: writes.len(), at, rejected: None };
        write.rejected = (self.rule)(&write);
        writes.push(write.clone());
        write.rejected
    }
}

/// The error in the words of the API server.
fn rejection(code: StatusCode) -> Response<Body> {
    let (reason, message) = match code {
        StatusCode::CONFLICT => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        _ => ("TooManyRequests", "Too many requests, please try again later."),
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code.as_u16(),
    });
    let response = Response::builder().status(code).header("content-type", "application/json");
    let response =
        if code == StatusCode::TOO_MANY_REQUESTS { response.header("retry-after", "1") } else { response };
    response.body(Body::from(status.to_string().into_bytes())).unwrap()
}
