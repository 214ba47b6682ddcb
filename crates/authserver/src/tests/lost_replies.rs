//! Replies of Redis that are lost or come twice, commands that are lost, commands that are executed long after they were given up, and
//! outages: a client that sends its request again, as it is told to, gets its tokens, no session ends, no refresh token of a provider
//! is lost, and nobody gets what is another's.

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use proptest::prelude::*;
use serde_json::{Value, json};
use skep_testkit::Redis;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

use super::{
    flow::{Flow, STEPS, Servers},
    stores::{PASSWORD, pending, row, settings},
    world::World,
};
use crate::{
    UpstreamTokenError,
    clock::Clock,
    keys::CODE,
    limits,
    rates::Rates,
    store::{RedisStore, Store, Taken, Upstream},
};

const CASES: u32 = 6;
/// How long the server waits for a reply.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many others are executed before a late command.
const LATE: usize = 4;

/// What becomes of a command.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Executed,
    /// The connection breaks before Redis gets it.
    Lost,
    /// The connection breaks after it was executed.
    ReplyLost,
    /// It is executed, and there is no reply.
    NoReply,
    /// The connection breaks, and it is executed after others that were sent later.
    Late,
    /// Its reply comes, and once more with that of the next one.
    Doubled,
    /// The connection breaks, and there is no other one for so many milliseconds.
    Outage(u64),
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Executed),
        1 => Just(Fate::Lost),
        3 => Just(Fate::ReplyLost),
        1 => Just(Fate::NoReply),
        2 => Just(Fate::Late),
        2 => Just(Fate::Doubled),
        1 => (1000u64..3000).prop_map(Fate::Outage),
    ];
    prop::collection::vec(fate, 1..20)
}

/// A network between the server and its Redis, which misbehaves as it is told to.
#[derive(Clone, Default)]
struct Network {
    fates: Arc<Mutex<VecDeque<Fate>>>,
    executed: Arc<AtomicUsize>,
    /// Until when it is down.
    down: Arc<Mutex<Option<Instant>>>,
}

impl Network {
    /// Its address.
    async fn to(self, redis: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if self.down.lock().unwrap().is_some_and(|until| Instant::now() < until) {
                    continue;
                }
                let server = TcpStream::connect(redis).await.unwrap();
                tokio::spawn(self.clone().carry(client, server));
            }
        });
        address
    }

    /// Carries commands, each of which comes in one piece: there is one client, which waits for each reply.
    async fn carry(self, mut client: TcpStream, mut server: TcpStream) {
        let (mut sent, mut reply) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        let mut once_more = Vec::new();
        while let Ok(length @ 1..) = client.read(&mut sent).await {
            let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Executed);
            match fate {
                Fate::Lost => return,
                Fate::Late => {
                    client.shutdown().await.ok();
                    let until = self.executed.load(Ordering::SeqCst) + LATE;
                    while self.executed.load(Ordering::SeqCst) < until {
                        sleep(Duration::from_millis(5)).await;
                    }
                }
                Fate::Outage(time) => {
                    let until = Instant::now() + Duration::from_millis(time);
                    *self.down.lock().unwrap() = Some(until);
                    return;
                }
                Fate::Executed | Fate::ReplyLost | Fate::NoReply | Fate::Doubled => {}
            }
            server.write_all(&sent[..length]).await.unwrap();
            let Ok(length @ 1..) = server.read(&mut reply).await else { return };
            self.executed.fetch_add(1, Ordering::SeqCst);
            match fate {
                Fate::Executed | Fate::Doubled => {
                    let replies = [&once_more, &reply[..length]].concat();
                    client.write_all(&replies).await.unwrap_or_default();
                    once_more.clear();
                }
                Fate::NoReply => {}
                Fate::Lost | Fate::ReplyLost | Fate::Late | Fate::Outage(_) => return,
            }
            if let Fate::Doubled = fate {
                once_more = reply[..length].to_vec();
            }
        }
    }
}

/// Sends a request until the server does not tell the client to send it again.
async fn until_answered(request: impl AsyncFn() -> (StatusCode, Value)) -> (StatusCode, Value) {
    loop {
        let (status, body) = request().await;
        if status != StatusCode::SERVICE_UNAVAILABLE {
            return (status, body);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

struct Stage {
    servers: Servers,
    world: World,
    network: Network,
}

impl Stage {
    /// Uses a session whose token at a provider has expired each time.
    async fn refresh_at_provider(&mut self, fates: &[Fate]) {
        let World { server, provider } = &self.world;
        let session = Uuid::new_v4().to_string();
        let refresh_token = |number: u32| format!("{session}-{number}");
        let first = Upstream {
            provider_id: "one".into(),
            refresh_token: refresh_token(0),
            expires_at: 1,
            ..row("expired")
        };
        server.store.put_upstream(&session, &first, Duration::from_secs(1 << 20)).await.unwrap();
        self.network.fates.lock().unwrap().extend(fates);
        for number in 1..=3 {
            let access_token = format!("access-{number}");
            provider.answer(
                "/token",
                json!({
                    "access_token": access_token, "token_type": "bearer", "expires_in": 3600,
                    "refresh_token": refresh_token(number),
                }),
            );
            let token = loop {
                match server.upstream_tokens().access_token(&session, "one").await {
                    Err(UpstreamTokenError::Unavailable) => server.clock.advance(2 * limits::REFRESH_PAUSE),
                    done => break done,
                }
            };
            assert_eq!(token, Ok(access_token));
            server.clock.advance(Duration::from_secs(3601));
        }
        self.network.fates.lock().unwrap().clear();
        let sent = provider.requests("/token").into_iter().filter_map(|request| {
            request.form.get("refresh_token").filter(|token| token.starts_with(&session)).cloned()
        });
        assert_eq!(sent.collect::<Vec<_>>(), [0, 1, 2].map(refresh_token));
    }

    async fn play(&mut self, fates: &[Fate]) {
        let mut flow = Flow::new("ann");
        for step in &STEPS[..5] {
            flow.step(&self.servers, &self.world, step).await.unwrap();
        }
        self.network.fates.lock().unwrap().extend(fates);
        let (status, mut tokens) = until_answered(async || flow.redeem(&self.world).await).await;
        assert_eq!(status, StatusCode::OK, "the code: {tokens}");
        for number in 0..3 {
            let token = tokens["refresh_token"].as_str().unwrap().to_owned();
            let refresh = async || self.world.refresh(&flow.client, &token, &[]).await;
            let (status, next) = until_answered(refresh).await;
            assert_eq!(status, StatusCode::OK, "refresh {number}: {next}");
            assert_ne!(next["refresh_token"], tokens["refresh_token"]);
            tokens = next;
        }
        // What is still to be executed must not change anything.
        self.network.fates.lock().unwrap().clear();
        let access = tokens["access_token"].as_str().unwrap();
        for _ in 0..3 * LATE {
            let claims = self.world.server.claims(access).await;
            assert!(!matches!(claims, Ok(None)), "its session has ended");
        }
        let server = &self.world.server;
        let code = server.settings.opaque.signature(CODE, &flow.code).unwrap();
        let is_spent = async || matches!(server.store.code(code).await, Ok(Some((_, Taken::Spent))));
        let spent = async { while !is_spent().await {} };
        timeout(Duration::from_secs(30), spent).await.expect("the code is spent, soon");
        let (status, body) = until_answered(async || flow.redeem(&self.world).await).await;
        assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &"invalid_grant".into()), "{body}");
    }
}

/// A store behind a network, for which the test is to keep its Redis.
async fn store_behind(network: &Network) -> (Redis, Arc<dyn Store>) {
    let redis = Redis::with_password(PASSWORD).await;
    let address = network.clone().to(redis.address().parse().unwrap()).await;
    let mut settings = settings(None, PASSWORD, address.to_string().parse().unwrap(), None);
    settings.connection.timeouts.response = PATIENCE;
    (redis, Arc::new(RedisStore::new(settings, Clock::default()).unwrap()))
}

/// Runs a property on a stage.
fn check(cases: u32, play: impl AsyncFn(&mut Stage, &[Fate])) {
    let runtime = Runtime::new().unwrap();
    let network = Network::default();
    let (_redis, stage) = runtime.block_on(async {
        let (redis, store) = store_behind(&network).await;
        let (servers, provider) = Servers::new().await;
        let world = World { server: servers.start(store).await, provider };
        (redis, Stage { servers, world, network })
    });
    let stage = Mutex::new(stage);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    proptest!(config, |(fates in fates())| {
        let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
        stage.world.server.rates = Rates::default();
        runtime.block_on(play(&mut stage, &fates));
    });
}

#[test]
fn no_session_ends_and_no_code_is_used_twice_whatever_becomes_of_replies_of_redis() {
    check(CASES, Stage::play);
}

/// The provider issues another refresh token each time, as those do that take the use of an earlier one for theft.
#[test]
fn no_refresh_token_of_a_provider_is_lost_or_sent_twice_whatever_becomes_of_replies_of_redis() {
    check(CASES / 2, Stage::refresh_at_provider);
}

/// The outage begins at each command of a refresh in turn.
#[tokio::test]
async fn a_token_that_a_provider_has_rotated_survives_an_outage_of_redis() {
    let network = Network::default();
    let (_redis, store) = store_behind(&network).await;
    let (servers, provider) = Servers::new().await;
    let world = World { server: servers.start(store).await, provider };
    let mut stage = Stage { servers, world, network };
    for position in 0..6 {
        let fates = [vec![Fate::Executed; position], vec![Fate::Outage(1200)]].concat();
        stage.refresh_at_provider(&fates).await;
    }
}

#[tokio::test]
async fn a_reply_that_comes_twice_is_taken_for_no_other() {
    let network = Network::default();
    let (_redis, store) = store_behind(&network).await;
    for user in ["ann", "bob"] {
        let row = Upstream { user_id: user.into(), ..row(user) };
        store.put_upstream(user, &row, Duration::from_secs(600)).await.unwrap();
    }
    store.end_session("ended", &[], Duration::from_secs(600)).await.unwrap();
    for position in 0..8 {
        let fates = [vec![Fate::Executed; position], vec![Fate::Doubled]].concat();
        network.fates.lock().unwrap().extend(fates);
        for _ in 0..4 {
            for user in ["ann", "bob"] {
                let found = store.upstream(user, "corp").await.unwrap().unwrap();
                assert_eq!((&*found.user_id, &*found.access_token), (user, user), "{position}");
            }
            assert!(store.is_ended("ended").await.unwrap() && !store.is_ended("ann").await.unwrap());
        }
    }
}

/// The page tells the user to load it again in a moment.
#[tokio::test]
async fn a_login_goes_on_when_its_page_is_loaded_again_after_a_lost_reply() {
    let network = Network::default();
    let (_redis, store) = store_behind(&network).await;
    let address = IpAddr::from([203, 0, 113, 9]);
    for fate in [Fate::NoReply, Fate::Outage(600)] {
        store.put_pending("state", &pending("of-ann"), address).await.unwrap();
        network.fates.lock().unwrap().push_back(fate);
        let mut taken = store.take_pending("state", address).await;
        assert!(taken.is_err(), "{fate:?}");
        let until = Instant::now() + Duration::from_secs(20);
        while !matches!(taken, Ok(Some(_))) && Instant::now() < until {
            sleep(Duration::from_millis(20)).await;
            taken = store.take_pending("state", address).await;
        }
        assert_eq!(taken.unwrap().map(|pending| pending.state).as_deref(), Some("of-ann"), "{fate:?}");
        assert!(store.take_pending("state", address).await.unwrap().is_none(), "it is taken once: {fate:?}");
    }
}
