//! A fake of the security token service of AWS, which is not available to tests.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// The form of a request.
type Form = HashMap<String, String>;

/// Responds with a status and a text, and records the forms that it receives.
pub struct FakeSts {
    /// Its address.
    pub address: String,
    shared: Arc<Mutex<State>>,
}

struct State {
    answer: (u16, String),
    requests: Vec<Form>,
}

impl FakeSts {
    /// Starts one on loopback.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}/", listener.local_addr().expect("its address"));
        let shared = Arc::new(Mutex::new(State { answer: (200, String::new()), requests: Vec::new() }));
        let fake = Self { address, shared: shared.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                let service = service_fn(move |request| respond(request, shared.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        fake
    }

    /// Responds so from now on.
    pub fn respond(&self, status: u16, text: &str) {
        locked(&self.shared).answer = (status, text.to_owned());
    }

    /// Responds with credentials, as AWS documents it.
    pub fn respond_with_credentials(&self, key: &str) {
        self.respond(
            200,
            &format!(
                r#"<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
                  <AssumeRoleWithWebIdentityResult>
                    <SubjectFromWebIdentityToken>alice</SubjectFromWebIdentityToken>
                    <Credentials>
                      <SessionToken>session/{key}==</SessionToken>
                      <SecretAccessKey>secret&amp;{key}</SecretAccessKey>
                      <Expiration>2014-10-24T23:00:23Z</Expiration>
                      <AccessKeyId>{key}</AccessKeyId>
                    </Credentials>
                  </AssumeRoleWithWebIdentityResult>
                </AssumeRoleWithWebIdentityResponse>"#
            ),
        );
    }

    /// The forms that it has received.
    pub fn requests(&self) -> Vec<Form> {
        locked(&self.shared).requests.clone()
    }
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let mut state = locked(&shared);
    state.requests.push(form_urlencoded::parse(&body).into_owned().collect());
    let (status, text) = state.answer.clone();
    let response = Response::builder().status(status).header("content-type", "text/xml");
    Ok(response.body(Full::new(Bytes::from(text))).expect("a response"))
}

fn locked(shared: &Mutex<State>) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
