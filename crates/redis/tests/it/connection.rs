//! One server: its password, its database, its messages, and replies that are not as they should be.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use skep_redis::{Cause, Redis, RedisUnavailable, Settings, Timeouts, cmd};
use skep_testkit::{PATIENCE, RedisNetwork, ReplyFault, free_port};
use tokio::{net::TcpListener, time::timeout};

pub(crate) const PASSWORD: &str = "correct-horse";

pub(crate) fn settings(place: &str) -> Settings {
    let (connect, response) = (Duration::from_secs(2), Duration::from_secs(2));
    Settings {
        field: "a.field",
        place: place.parse().unwrap(),
        db: 0,
        user: None,
        password: PASSWORD.to_owned(),
        password_variable: "A_VARIABLE".to_owned(),
        timeouts: Timeouts { connect, response, total: Duration::from_secs(3) },
    }
}

fn open(place: &str) -> Redis {
    Redis::new(Settings { password: String::new(), ..settings(place) }).unwrap()
}

async fn ping(client: &Redis) -> Result<(), RedisUnavailable> {
    client.query(&cmd("PING")).await
}

#[tokio::test]
async fn password_and_database_are_used() {
    let redis = skep_testkit::Redis::with_password(PASSWORD).await;
    let client = Redis::new(Settings { db: 3, ..settings(&redis.address()) }).unwrap();
    client.check().await.unwrap();
    let info: String = client.query(cmd("CLIENT").arg("INFO")).await.unwrap();
    assert!(info.contains(" db=3 "), "{info}");
    let missing = Redis::new(Settings { db: 99, ..settings(&redis.address()) }).unwrap();
    let error = missing.check().await.unwrap_err().to_string();
    assert!(error.contains("there is no such database"), "{error}");
    assert!(Redis::new(Settings { db: -1, ..settings("r:1") }).is_err());
    assert!(Redis::new(Settings { db: 1, ..settings("redis+cluster://r:1") }).is_err());
}

#[tokio::test]
async fn wrong_password_is_reported_with_its_variable_only() {
    let redis = skep_testkit::Redis::with_password(PASSWORD).await;
    for (password, expected) in [("battery-staple", "rejects the user or the password"), ("", "password")] {
        let client =
            Redis::new(Settings { password: password.into(), ..settings(&redis.address()) }).unwrap();
        let error = client.check().await.unwrap_err();
        let text = format!("{error} {error:?} {client:?}");
        assert!(text.contains(expected) && text.contains("A_VARIABLE"), "{text}");
        assert!(!text.contains("battery-staple"), "{text}");
        let RedisUnavailable(cause) = client.query::<()>(&cmd("PING")).await.unwrap_err();
        assert_eq!(cause, Cause::Auth);
    }
}

#[tokio::test]
async fn doubled_reply_does_not_answer_another_command() {
    let redis = skep_testkit::Redis::start().await;
    let network = RedisNetwork::before(&redis).await;
    let client = open(&network.address());
    for (key, value) in [("one", "1"), ("two", "2")] {
        client.query::<()>(cmd("SET").arg(key).arg(value)).await.unwrap();
    }
    network.fail("one", ReplyFault::Doubled);
    for (key, value) in [("one", "1"), ("two", "2"), ("one", "1")] {
        assert_eq!(client.query::<String>(cmd("GET").arg(key)).await.unwrap(), value);
    }
    assert!(network.has_failed());
}

#[tokio::test]
async fn lost_reply_is_requested_again() {
    let redis = skep_testkit::Redis::start().await;
    let network = RedisNetwork::before(&redis).await;
    let client = open(&network.address());
    network.fail("one", ReplyFault::Lost);
    client.query::<()>(cmd("SET").arg("one").arg("1")).await.unwrap();
    assert!(network.has_failed());
    assert_eq!(redis.commands().await["set"], 2, "it was executed twice");
}

#[tokio::test]
async fn requests_fail_immediately_while_one_connects() {
    let address = format!("127.0.0.1:{}", free_port());
    let client = Arc::new(open(&address));
    assert_eq!(ping(&client).await.unwrap_err().0, Cause::Connection);
    // It accepts connections and never responds.
    let listener = TcpListener::bind(&address).await.unwrap();
    let connecting = tokio::spawn({
        let client = client.clone();
        async move { while ping(&client).await.is_err() {} }
    });
    let (_silent, _) = timeout(PATIENCE, listener.accept()).await.expect("one request connects").unwrap();
    let start = Instant::now();
    for _ in 0..100 {
        assert_eq!(ping(&client).await.unwrap_err().0, Cause::Connection);
    }
    assert!(start.elapsed() < settings(&address).timeouts.connect, "{:?}", start.elapsed());
    connecting.abort();
}

#[tokio::test]
async fn lost_connection_is_replaced_for_all_requests() {
    let mut redis = skep_testkit::Redis::start().await;
    let client = open(&redis.address());
    ping(&client).await.unwrap();
    redis.kill();
    redis.start_again().await;
    for reply in join_all((0..16).map(|_| ping(&client))).await {
        reply.unwrap();
    }
}
