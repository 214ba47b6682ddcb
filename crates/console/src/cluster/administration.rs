//! The administration of authorization servers, as the pods of their objects offer it.
//!
//! The console sends a token of its own ServiceAccount that is good for the administration of this one object,
//! so neither the token of a user nor one for the API server reaches a pod. Pods without a shared storage have
//! sessions of their own: then each of them gets the request.

use std::net::SocketAddr;

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use jiff::Timestamp;
use kube::Client as KubeClient;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use skep_config::administration::{CLIENTS, SESSIONS, audience};
use skep_gateway::{ConfigError, body, outbound::Client};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{
    service::Services,
    token::{Account, Tokens},
};
use crate::{Key, limits, objects::Object};

/// Administers the authorization servers of a cluster.
pub(crate) struct Administrator {
    services: Services,
    tokens: Tokens,
    client: Client,
}

/// Selects sessions: those with all of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) session: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) client: Option<String>,
}

/// A session of a user, as a pod reports it.
#[derive(Deserialize, Serialize)]
pub(crate) struct Session {
    id: String,
    user: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    email: String,
    #[serde(default)]
    client: String,
    #[serde(default, rename(serialize = "clientName"))]
    client_name: String,
    #[serde(default)]
    since: Option<Timestamp>,
    #[serde(default)]
    until: Option<Timestamp>,
}

/// A client that has registered, as a pod reports it.
#[derive(Deserialize, Serialize)]
pub(crate) struct RegisteredClient {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default, rename(serialize = "redirectUris"))]
    redirect_uris: Vec<String>,
    #[serde(default)]
    public: bool,
}

/// The first entries of a list.
#[derive(Serialize)]
pub(crate) struct Listing<T> {
    pub(crate) entries: Vec<T>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// Part of a list of a pod.
#[derive(Deserialize)]
struct Part<T> {
    #[serde(alias = "sessions", alias = "ended", alias = "clients")]
    entries: Vec<T>,
    /// The beginning of the next part.
    #[serde(default)]
    next: Option<String>,
    /// Whether other pods have the same sessions.
    #[serde(default)]
    shared: bool,
}

/// Part of a list whose entries are only counted.
type Entries = Part<IgnoredAny>;

#[derive(Deserialize)]
struct Removal {
    registered: bool,
}

/// Why the administration of a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no pod of the server is ready behind its own Service")]
    NoPod,
    #[error("the console gets no token of its own ServiceAccount: see console.sessions of the chart")]
    NoToken,
    #[error("a pod of the server does not respond")]
    Unreachable,
    #[error("the server has no authorization server, or is of an older version")]
    Unsupported,
    #[error("the server does not let the console administer sessions: see console.sessions of the chart")]
    Denied,
    #[error("the storage of the authorization server does not respond, or too many administer it: try again")]
    Unavailable,
    #[error("the server took too long: only a part may be done, try again")]
    TooSlow,
}

/// The pods of an object, with a token for their administration.
struct Pods<'a> {
    client: &'a Client,
    authorization: HeaderValue,
    addresses: Vec<SocketAddr>,
}

impl Administrator {
    /// An administrator with the console's own client and account.
    pub(crate) fn new(client: KubeClient, account: Account) -> Result<Self, ConfigError> {
        Ok(Self {
            services: Services::new(client.clone()),
            tokens: Tokens::new(client, account),
            client: Client::new(false)?,
        })
    }

    /// Lists sessions.
    pub(crate) async fn sessions(
        &self,
        object: &Object,
        which: &Selection,
    ) -> Result<Listing<Session>, Failure> {
        in_time(async { self.connect(object).await?.list(SESSIONS, &which.query()).await }).await
    }

    /// Lists the clients that have registered and were used.
    pub(crate) async fn clients(&self, object: &Object) -> Result<Listing<RegisteredClient>, Failure> {
        in_time(async { self.connect(object).await?.list(CLIENTS, &[]).await }).await
    }

    /// Ends sessions, and returns their number.
    pub(crate) async fn end_sessions(&self, object: &Object, which: &Selection) -> Result<usize, Failure> {
        in_time(async { self.connect(object).await?.end(&which.query()).await }).await
    }

    /// Forgets a client: its registration, its approvals and its sessions. Returns the number of sessions.
    ///
    /// The registration is the first, so that the client continues no session and gets no new one meanwhile.
    pub(crate) async fn forget_client(&self, object: &Object, client: &str) -> Result<usize, Failure> {
        in_time(async {
            let pods = self.connect(object).await?;
            let query = [("client", client)];
            for pod in &pods.addresses {
                let (Removal { registered }, _) = pods.request(pod, &Method::DELETE, CLIENTS, &query).await?;
                debug!(%pod, registered, "a client was forgotten");
            }
            pods.end(&query).await
        })
        .await
    }

    async fn connect(&self, object: &Object) -> Result<Pods<'_>, Failure> {
        let uri: Uri = object.summary.url.parse().map_err(|_| Failure::NoPod)?;
        let addresses = self.services.pods(object, &uri).await;
        let addresses: Vec<_> = addresses.into_iter().take(limits::READERS_OF_OBJECT).collect();
        if uri.scheme_str() != Some("http") || addresses.is_empty() {
            return Err(Failure::NoPod);
        }
        let Key { kind, namespace, name } = &object.key;
        let token = self.tokens.request(audience(kind, namespace, name)).await.map_err(|error| {
            warn!(%error, "failed to get a token for the sessions of a server");
            Failure::NoToken
        })?;
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Failure::NoToken)?;
        authorization.set_sensitive(true);
        let mut pods = Pods { client: &self.client, authorization, addresses };
        pods.keep_one_if_shared().await?;
        Ok(pods)
    }
}

impl Selection {
    fn query(&self) -> Vec<(&str, &str)> {
        let given = [("session", &self.session), ("user", &self.user), ("client", &self.client)];
        given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect()
    }
}

impl Pods<'_> {
    /// Keeps one pod where all have the same sessions.
    async fn keep_one_if_shared(&mut self) -> Result<(), Failure> {
        let [first, _, ..] = self.addresses[..] else { return Ok(()) };
        // No session has this id, so nothing is searched for it.
        let (part, _): (Entries, _) =
            self.request(&first, &Method::GET, SESSIONS, &[("session", "-")]).await?;
        if part.shared {
            self.addresses.truncate(1);
        }
        Ok(())
    }

    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Listing<T>, Failure> {
        let (mut entries, mut read) = (Vec::new(), 0);
        for pod in &self.addresses {
            let mut from = String::new();
            loop {
                if entries.len() >= limits::SESSIONS_SHOWN || read >= limits::SESSIONS_READ {
                    entries.truncate(limits::SESSIONS_SHOWN);
                    return Ok(Listing { entries, more: true });
                }
                let (part, length): (Part<T>, _) =
                    self.request(pod, &Method::GET, path, &beginning(query, &from)).await?;
                entries.extend(part.entries);
                read += length;
                match part.next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        let more = entries.len() > limits::SESSIONS_SHOWN;
        entries.truncate(limits::SESSIONS_SHOWN);
        Ok(Listing { entries, more })
    }

    async fn end(&self, query: &[(&str, &str)]) -> Result<usize, Failure> {
        let mut ended = 0;
        for pod in &self.addresses {
            let mut from = String::new();
            loop {
                let (part, _): (Entries, _) =
                    self.request(pod, &Method::DELETE, SESSIONS, &beginning(query, &from)).await?;
                ended += part.entries.len();
                match part.next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        Ok(ended)
    }

    /// Sends a request to a pod, and returns the response with its length.
    async fn request<T: DeserializeOwned>(
        &self,
        pod: &SocketAddr,
        method: &Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<(T, usize), Failure> {
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let separator = if query.is_empty() { "" } else { "?" };
        let mut request = Request::new(Full::<Bytes>::default());
        *request.method_mut() = method.clone();
        *request.uri_mut() =
            format!("http://{pod}{path}{separator}{query}").parse().map_err(|_| Failure::Unsupported)?;
        request.headers_mut().insert(header::AUTHORIZATION, self.authorization.clone());
        let responded = timeout(limits::ADMINISTRATION_PART_TIME, async {
            // A redirect would lead elsewhere, with the token.
            let response = self.client.send_once(request).await.map_err(|error| {
                debug!(%pod, %error, "a pod does not respond");
                Failure::Unreachable
            })?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Failure::Denied),
                StatusCode::SERVICE_UNAVAILABLE => return Err(Failure::Unavailable),
                _ => return Err(Failure::Unsupported),
            }
            let read = body::read(response.into_body(), limits::ADMINISTRATION_PART).await;
            read.map_err(|_| Failure::Unreachable)
        });
        let body = responded.await.map_err(|_| Failure::Unreachable)??;
        let parsed = serde_json::from_slice(&body).map_err(|_| Failure::Unsupported)?;
        Ok((parsed, body.len()))
    }
}

/// The query for the part of a list that begins here.
fn beginning<'a>(query: &[(&'a str, &'a str)], from: &'a str) -> Vec<(&'a str, &'a str)> {
    let begin = (!from.is_empty()).then_some(("from", from));
    query.iter().copied().chain(begin).collect()
}

async fn in_time<T>(done: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(limits::ADMINISTRATION_TIME, done).await.map_err(|_| Failure::TooSlow)?
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use http::Response;
    use hyper::{body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;

    /// A fake pod that gives this answer to every request, and the requests that it has received.
    struct FakePod {
        address: SocketAddr,
        seen: Arc<Mutex<Vec<String>>>,
    }

    impl FakePod {
        async fn start(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Self {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let pod = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
            let (seen, answer) = (pod.seen.clone(), Arc::new(answer));
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (seen, answer) = (seen.clone(), answer.clone());
                    let service = service_fn(move |request: Request<Incoming>| {
                        let line = format!("{} {}", request.method(), request.uri());
                        let (status, body) = answer(&line);
                        seen.lock().unwrap().push(line);
                        let response = Response::builder()
                            .status(status)
                            .header("location", "/elsewhere")
                            .body(Full::new(Bytes::from(body)))
                            .unwrap();
                        async move { Ok::<_, Infallible>(response) }
                    });
                    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                }
            });
            pod
        }

        async fn with_sessions(is_shared: bool) -> Self {
            Self::start(move |line| {
                let sessions = json!([{"id": "s", "user": "u", "client": "c", "accounts": [], "more": {}}]);
                let body = match line.split_once('?').map_or(line, |(line, _)| line) {
                    "DELETE /skep/sessions" => json!({"ended": sessions}),
                    "DELETE /skep/clients" => json!({"registered": true}),
                    _ => json!({"sessions": sessions, "shared": is_shared}),
                };
                (200, body.to_string())
            })
            .await
        }

        fn seen(&self) -> Vec<String> {
            std::mem::take(&mut self.seen.lock().unwrap())
        }
    }

    async fn connect<'a>(client: &'a Client, pods: &[&FakePod]) -> Pods<'a> {
        let addresses = pods.iter().map(|pod| pod.address).collect();
        let authorization = HeaderValue::from_static("Bearer t");
        let mut pods = Pods { client, authorization, addresses };
        pods.keep_one_if_shared().await.unwrap();
        pods
    }

    #[tokio::test]
    async fn each_pod_ends_its_own_sessions() {
        let client = Client::new(false).unwrap();
        let (one, other) = (FakePod::with_sessions(false).await, FakePod::with_sessions(false).await);
        let pods = connect(&client, &[&one, &other]).await;
        assert_eq!(pods.list::<Session>(SESSIONS, &[]).await.unwrap().entries.len(), 2);
        assert_eq!(pods.end(&[("user", "ann@example.test")]).await, Ok(2));
        let ended = "DELETE /skep/sessions?user=ann%40example.test";
        assert_eq!(one.seen(), ["GET /skep/sessions?session=-", "GET /skep/sessions", ended]);
        assert_eq!(other.seen(), ["GET /skep/sessions", ended]);
    }

    #[tokio::test]
    async fn one_of_the_pods_with_shared_sessions_gets_the_requests() {
        let client = Client::new(false).unwrap();
        let (one, other) = (FakePod::with_sessions(true).await, FakePod::with_sessions(true).await);
        let pods = connect(&client, &[&one, &other]).await;
        assert_eq!(pods.end(&[("client", "c")]).await, Ok(1));
        assert_eq!((one.seen().len(), other.seen()), (2, Vec::new()));
    }

    #[tokio::test]
    async fn a_list_without_an_end_is_read_in_part() {
        let client = Client::new(false).unwrap();
        for (entries, text) in [(100, "u"), (10, &*"u".repeat(50_000))] {
            let session = json!({"id": "s", "user": text});
            let body = json!({"sessions": vec![session; entries], "next": "0", "shared": true}).to_string();
            let parts = (limits::SESSIONS_SHOWN / entries).min(limits::SESSIONS_READ / body.len() + 1);
            let pod = FakePod::start(move |_| (200, body.clone())).await;
            let pods = connect(&client, &[&pod]).await;
            let listed = pods.list::<Session>(SESSIONS, &[]).await.unwrap();
            assert!(listed.more && listed.entries.len() <= limits::SESSIONS_SHOWN);
            assert_eq!(pod.seen().len(), parts);
        }
    }

    #[tokio::test]
    async fn a_response_that_is_not_of_an_administration_is_a_failure() {
        let client = Client::new(false).unwrap();
        let huge = format!("[{}", " ".repeat(limits::ADMINISTRATION_PART));
        for (status, body, failure) in [
            (200, "{}", Failure::Unsupported),
            (200, "<html>", Failure::Unsupported),
            (200, r#"{"sessions": {}}"#, Failure::Unsupported),
            (200, &huge, Failure::Unreachable),
            (302, "", Failure::Unsupported),
            (404, "", Failure::Unsupported),
            (401, "", Failure::Denied),
            (403, "", Failure::Denied),
            (503, "", Failure::Unavailable),
        ] {
            let body = body.to_owned();
            let pod = FakePod::start(move |_| (status, body.clone())).await;
            let pods = connect(&client, &[&pod]).await;
            assert_eq!(pods.list::<Session>(SESSIONS, &[]).await.err(), Some(failure), "{status}");
            assert_eq!(pod.seen(), ["GET /skep/sessions"], "a redirect is not followed");
        }
    }

    #[test]
    fn a_session_reaches_the_page_without_other_fields() {
        let session = json!({
            "id": "s", "user": "u", "email": "ann@example.test", "accounts": [{"provider": "corp", "subject": "a1"}],
            "client": "c", "client_name": "Notes", "since": "2026-01-01T00:00:00Z", "access_token": "secret",
        });
        let session: Session = serde_json::from_value(session).unwrap();
        let shown: Value = serde_json::to_value(session).unwrap();
        let expected = json!({
            "id": "s", "user": "u", "name": "", "email": "ann@example.test", "client": "c", "clientName": "Notes",
            "since": "2026-01-01T00:00:00Z", "until": null,
        });
        assert_eq!(shown, expected);
    }
}
