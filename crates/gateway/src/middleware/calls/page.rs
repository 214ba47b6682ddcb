//! The stream of calls for the console of a cluster.
//!
//! It is read with a token of the console's ServiceAccount whose audience is the calls of this one object. The token is verified with
//! the keys that the API server publishes to all ServiceAccounts, so the endpoint needs no permission for it, and asks for no
//! decision: whose calls a user of the console may see is up to the console.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, Method, Response, StatusCode};
use serde::Serialize;
use skep_auth::{AuthenticationError, Authenticator, Pace};
use skep_config::{calls::audience, env, run_config::Oidc};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, Interval, MissedTickBehavior, interval},
};
use tracing::{info, warn};

use super::{CallLog, Counts};
use crate::{
    ConfigError,
    http::{Body, BodyError, events, response},
    limits,
    pod::Pod,
};

/// The event with a list of calls.
pub const CALLS_EVENT: &str = "calls";
/// The event with what was counted in the last minute.
pub const COUNTS_EVENT: &str = "counts";
/// The event with the connections of users, where there is an authorization server.
pub const CONNECTIONS_EVENT: &str = "connections";
/// How often counts are sent, in ticks.
const COUNTS_TICKS: u32 = 4;

/// The calls of an endpoint, for those who may read them.
pub struct CallsPage {
    log: Arc<CallLog>,
    /// The subject of the tokens that are accepted.
    reader: String,
    authenticator: Authenticator,
    watchers: Arc<Semaphore>,
    closing: watch::Sender<bool>,
}

impl CallsPage {
    /// The page for tokens of this subject, which are validated as `oidc` says.
    pub fn new(reader: &str, oidc: &Oidc) -> Result<Self, ConfigError> {
        let invalid = |error| ConfigError::new(format!("{}: {error}", env::CALLS_READER));
        Ok(Self {
            log: Arc::new(CallLog::new()),
            reader: reader.to_owned(),
            authenticator: Authenticator::new(oidc, "", Pace::default()).map_err(invalid)?,
            watchers: Arc::new(Semaphore::new(limits::CALLS_WATCHERS)),
            closing: watch::Sender::new(false),
        })
    }

    /// The page of an object whose pod has this environment, if it names a reader. A pod that cannot verify tokens has none:
    /// people who watch are no reason not to serve.
    pub fn in_a_pod(variables: &BTreeMap<String, String>, kind: &str, name: &str) -> Option<Self> {
        let page = Self::of_environment(variables, kind, name);
        page.inspect_err(|error| warn!(%error, "calls are not shown in the console")).ok().flatten()
    }

    fn of_environment(
        variables: &BTreeMap<String, String>,
        kind: &str,
        name: &str,
    ) -> Result<Option<Self>, ConfigError> {
        let text = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let Some(reader) = text(env::CALLS_READER) else { return Ok(None) };
        let pod = Pod::of_environment(variables)
            .map_err(|error| ConfigError::new(format!("{}: {error}", env::CALLS_READER)))?;
        let Some(pod) = pod else {
            let message = format!("{}: calls are read in a cluster only", env::CALLS_READER);
            return Err(ConfigError::new(message));
        };
        Self::new(reader, &pod.tokens_for(audience(kind, &pod.namespace, name))).map(Some)
    }

    /// The log that it shows.
    pub fn log(&self) -> &Arc<CallLog> {
        &self.log
    }

    /// Ends all streams.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// The calls from the last ones on, until the token expires.
    pub async fn respond(&self, method: &Method, headers: &HeaderMap) -> Response<Body> {
        if method != Method::GET {
            return response::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET\n");
        }
        let identity = match self.authenticator.identity(headers).await {
            Ok(identity) if identity.subject == self.reader => identity,
            Ok(_) => {
                return response::text(StatusCode::FORBIDDEN, "this ServiceAccount may not read calls\n");
            }
            Err(AuthenticationError::Unavailable) => {
                return response::text(StatusCode::SERVICE_UNAVAILABLE, "the token cannot be verified now\n");
            }
            Err(error) => {
                info!(reason = %error, "unauthenticated request for calls rejected");
                return response::text(
                    StatusCode::UNAUTHORIZED,
                    "a token for the calls of this object is needed\n",
                );
            }
        };
        let Ok(place) = self.watchers.clone().try_acquire_owned() else {
            return response::text(StatusCode::SERVICE_UNAVAILABLE, "too many consoles watch\n");
        };
        let mut closing = self.closing.subscribe();
        let closed = Box::pin(async move { closing.wait_for(|closing| *closing).await.is_ok() });
        let pieces = stream::unfold(Watcher::new(self.log.clone(), place), |mut watcher| async {
            let piece = watcher.next().await;
            Some((Ok(Bytes::from(piece)), watcher))
        });
        // On its own, because a storage that is slow delays no call.
        let pieces = stream::select(pieces, connections(self.log.clone()));
        let body = Body::Made(pieces.take_until(closed).boxed());
        events::response(match identity.validity() {
            Some(time) => events::ended_after(body, time),
            None => body,
        })
    }
}

/// One who watches: what it has got.
struct Watcher {
    log: Arc<CallLog>,
    /// The number of the last call that was sent.
    seen: u64,
    counts: Option<Counts>,
    ticks: Interval,
    tick: u32,
    last: Instant,
    _place: OwnedSemaphorePermit,
}

impl Watcher {
    fn new(log: Arc<CallLog>, place: OwnedSemaphorePermit) -> Self {
        let mut ticks = interval(limits::CALLS_TIME);
        // It is not polled while the client does not read.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { log, seen: 0, counts: None, ticks, tick: 0, last: Instant::now(), _place: place }
    }

    /// What is new, as soon as there is something.
    async fn next(&mut self) -> String {
        loop {
            self.ticks.tick().await;
            let mut text = String::new();
            let calls = self.log.since(self.seen);
            if let Some(last) = calls.last() {
                self.seen = last.id;
                text.push_str(&event(CALLS_EVENT, &calls));
            }
            if self.tick.is_multiple_of(COUNTS_TICKS) {
                let counts = self.log.counts();
                if self.counts.as_ref() != Some(&counts) {
                    text.push_str(&event(COUNTS_EVENT, &counts));
                    self.counts = Some(counts);
                }
            }
            self.tick = self.tick.wrapping_add(1);
            if text.is_empty() && self.last.elapsed() >= limits::CALLS_KEEP_ALIVE {
                text.push_str(":\n\n");
            }
            if !text.is_empty() {
                self.last = Instant::now();
                return text;
            }
        }
    }
}

/// The connections of users whenever they have changed, if there is an authorization server.
fn connections(log: Arc<CallLog>) -> impl Stream<Item = Result<Bytes, BodyError>> {
    let mut ticks = interval(limits::CONNECTIONS_TIME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    stream::unfold((log, ticks, None), |(log, mut ticks, sent)| async move {
        loop {
            ticks.tick().await;
            let found = log.own_connections().await;
            if found.is_some() && found != sent {
                let piece = Bytes::from(event(CONNECTIONS_EVENT, &found));
                return Some((Ok(piece), (log, ticks, found)));
            }
        }
    })
}

fn event(name: &str, data: &impl Serialize) -> String {
    // JSON has no line breaks, so the data is one line.
    format!("event: {name}\ndata: {}\n\n", serde_json::to_string(data).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderValue, header};
    use http_body_util::BodyExt;
    use serde_json::json;
    use skep_testkit::IdentityProvider;

    use super::*;
    use crate::middleware::calls::{connections::tests::FakeSource, tests::call};

    const READER: &str = "system:serviceaccount:skep-system:skep-console";

    struct Fixture {
        provider: IdentityProvider,
        page: CallsPage,
    }

    impl Fixture {
        async fn new() -> Self {
            let provider = IdentityProvider::start().await;
            let oidc = Oidc {
                audience: audience("MCPServer", "n", "a"),
                jwks_url: format!("{}/keys", provider.issuer),
                insecure_allow_http: true,
                allow_private_ip: true,
                ..Oidc::default()
            };
            let page = CallsPage::new(READER, &oidc).unwrap();
            Self { provider, page }
        }

        /// A token of this subject for the calls of an MCPServer.
        fn token(&self, subject: &str, name: &str) -> String {
            self.provider.token(json!({"sub": subject, "aud": [audience("MCPServer", "n", name)]}))
        }

        async fn get(&self, token: &str) -> Response<Body> {
            let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
            self.page.respond(&Method::GET, &headers).await
        }
    }

    async fn next(body: &mut Body) -> String {
        let frame = body.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn only_the_reader_with_a_token_for_this_object_gets_calls() {
        let fixture = Fixture::new().await;
        let status = async |token: &str| fixture.get(token).await.status();
        assert_eq!(status(&fixture.token(READER, "a")).await, StatusCode::OK);
        // A token that another proxy has got, and one for the API server.
        assert_eq!(status(&fixture.token(READER, "b")).await, StatusCode::UNAUTHORIZED);
        let of_api_server =
            fixture.provider.token(json!({"sub": READER, "aud": "https://kubernetes.default.svc"}));
        assert_eq!(status(&of_api_server).await, StatusCode::UNAUTHORIZED);
        // Each ServiceAccount can get a token for any audience.
        let other = "system:serviceaccount:n:a-proxy-runner";
        assert_eq!(status(&fixture.token(other, "a")).await, StatusCode::FORBIDDEN);
        let expired = json!({"sub": READER, "aud": audience("MCPServer", "n", "a"), "exp": 1});
        assert_eq!(status(&fixture.provider.token(expired)).await, StatusCode::UNAUTHORIZED);
        let forged = IdentityProvider::start().await;
        let forged = forged.token(json!({"sub": READER, "aud": audience("MCPServer", "n", "a")}));
        assert_eq!(status(&forged).await, StatusCode::UNAUTHORIZED);
        assert_eq!(status("").await, StatusCode::UNAUTHORIZED);
        let none = fixture.page.respond(&Method::GET, &HeaderMap::new()).await;
        assert_eq!(none.status(), StatusCode::UNAUTHORIZED);
        let posted = fixture.page.respond(&Method::POST, &HeaderMap::new()).await;
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[tokio::test]
    async fn a_watcher_gets_the_last_calls_and_each_one_that_follows() {
        let fixture = Fixture::new().await;
        let log = fixture.page.log();
        log.record(call("before"), Duration::from_millis(1));
        let mut body = fixture.get(&fixture.token(READER, "a")).await.into_body();
        let first = next(&mut body).await;
        assert!(first.starts_with("event: calls\ndata: [{\"id\":1,") && first.contains("before"), "{first}");
        let counts = first.split_once("event: counts\ndata: {\"seconds\":").unwrap().1;
        // How many seconds they cover depends on the machine.
        assert!(counts.contains(",\"calls\":1,\"errors\":0,"), "{first}");
        log.record(call("after"), Duration::from_millis(1));
        let mut second = String::new();
        while !second.contains("\"id\":2,") {
            second.push_str(&next(&mut body).await);
        }
        assert!(!second.contains("before"), "{second}");
        fixture.page.close();
        while let Some(frame) = body.frame().await {
            assert!(frame.is_ok(), "it ends");
        }
    }

    #[tokio::test]
    async fn the_reader_gets_the_connections_of_users_and_strangers_get_none() {
        let fixture = Fixture::new().await;
        let source = Arc::new(FakeSource::default());
        fixture.page.log().set_connection_source(source.clone());
        for stranger in
            ["", &fixture.token("system:serviceaccount:n:a-proxy-runner", "a"), &fixture.token(READER, "b")]
        {
            let response = fixture.get(stranger).await;
            assert_ne!(response.status(), StatusCode::OK);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(!String::from_utf8_lossy(&body).contains("ann"), "{body:?}");
        }
        let mut body = fixture.get(&fixture.token(READER, "a")).await.into_body();
        let mut text = String::new();
        while !text.contains("event: connections\n") {
            text.push_str(&next(&mut body).await);
        }
        let data = text.split_once("event: connections\ndata: ").unwrap().1.lines().next().unwrap();
        let shown = json!([{
            "user": "ann", "provider": "corp", "account": "a", "since": "1970-01-01T00:00:00Z", "until": null,
            "renewed": true,
        }]);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(data).unwrap(),
            json!({"available": true, "shared": true, "total": 7, "shown": shown})
        );
    }

    #[tokio::test]
    async fn watchers_that_do_not_read_delay_no_call_and_hold_no_more_than_the_last_ones() {
        let fixture = Fixture::new().await;
        let token = fixture.token(READER, "a");
        let mut stalled = Vec::new();
        for _ in 0..limits::CALLS_WATCHERS {
            let response = fixture.get(&token).await;
            assert_eq!(response.status(), StatusCode::OK);
            stalled.push(response.into_body());
        }
        assert_eq!(fixture.get(&token).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        let log = fixture.page.log();
        for number in 0..10_000 {
            log.record(call(&number.to_string()), Duration::from_millis(1));
        }
        // It begins where it can, and gets each call once.
        let text = next(&mut stalled[0]).await;
        assert_eq!(text.matches("\"target\"").count(), limits::LAST_CALLS);
        assert!(text.contains("\"id\":10000,"), "{text}");
        stalled.pop();
        assert_eq!(fixture.get(&token).await.status(), StatusCode::OK, "a place is free again");
    }

    #[tokio::test]
    async fn without_a_reader_there_is_no_page_and_outside_a_cluster_neither() {
        let page = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            CallsPage::of_environment(&variables, "MCPServer", "a")
        };
        assert!(page(&[]).unwrap().is_none() && page(&[(env::CALLS_READER, "")]).unwrap().is_none());
        let error = page(&[(env::CALLS_READER, READER)]).err().unwrap().to_string();
        assert_eq!(error, "SKEP_CALLS_READER: calls are read in a cluster only");
    }
}
