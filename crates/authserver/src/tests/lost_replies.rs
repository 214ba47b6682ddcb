//! Replies of Redis that are lost, commands that are lost, and commands that are executed long after they were given up: a client that
//! sends its request again, as it is told to, gets its tokens, and no session ends.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use proptest::prelude::*;
use serde_json::Value;
use skep_testkit::Redis;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    time::{sleep, timeout},
};

use super::{
    flow::{Flow, STEPS, Servers},
    stores::{PASSWORD, settings},
    world::World,
};
use crate::{
    clock::Clock,
    config::{RedisPlace, RedisSettings},
    keys::CODE,
    rates::Rates,
    store::{RedisStore, Taken},
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
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Executed),
        1 => Just(Fate::Lost),
        3 => Just(Fate::ReplyLost),
        1 => Just(Fate::NoReply),
        2 => Just(Fate::Late),
    ];
    prop::collection::vec(fate, 1..20)
}

/// A network between the server and its Redis, which misbehaves as it is told to.
#[derive(Clone, Default)]
struct Network {
    fates: Arc<Mutex<VecDeque<Fate>>>,
    executed: Arc<AtomicUsize>,
}

impl Network {
    /// Its address.
    async fn to(self, redis: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(redis).await.unwrap();
                tokio::spawn(self.clone().carry(client, server));
            }
        });
        address
    }

    /// Carries commands, each of which comes in one piece: there is one client, which waits for each reply.
    async fn carry(self, mut client: TcpStream, mut server: TcpStream) {
        let (mut sent, mut reply) = (vec![0; 64 << 10], vec![0; 64 << 10]);
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
                Fate::Executed | Fate::ReplyLost | Fate::NoReply => {}
            }
            server.write_all(&sent[..length]).await.unwrap();
            let Ok(length @ 1..) = server.read(&mut reply).await else { return };
            self.executed.fetch_add(1, Ordering::SeqCst);
            match fate {
                Fate::Executed => client.write_all(&reply[..length]).await.unwrap_or_default(),
                Fate::NoReply => {}
                Fate::Lost | Fate::ReplyLost | Fate::Late => return,
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
        let spent = async { while server.store.take_code(code).await != Ok(Taken::Spent) {} };
        timeout(Duration::from_secs(30), spent).await.expect("the code is spent, soon");
        let (status, body) = until_answered(async || flow.redeem(&self.world).await).await;
        assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &"invalid_grant".into()), "{body}");
    }
}

#[test]
fn no_session_ends_and_no_code_is_used_twice_whatever_replies_of_redis_get_lost() {
    let runtime = Runtime::new().unwrap();
    let network = Network::default();
    let (_redis, stage) = runtime.block_on(async {
        let redis = Redis::with_password(PASSWORD).await;
        let address = network.clone().to(redis.address().parse().unwrap()).await;
        let place = RedisPlace::Address(address.to_string());
        let settings =
            RedisSettings { response_time: PATIENCE, ..settings(None, PASSWORD, place, None, None) };
        let store = Arc::new(RedisStore::new(settings, Clock::default()).unwrap());
        let (servers, provider) = Servers::new().await;
        let world = World { server: servers.start(store).await, provider };
        (redis, Stage { servers, world, network })
    });
    let stage = Mutex::new(stage);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) };
    proptest!(config, |(fates in fates())| {
        let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
        stage.world.server.rates = Rates::default();
        runtime.block_on(stage.play(&fates));
    });
}
