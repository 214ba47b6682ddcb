//! Redis behind Sentinels, as a cluster, and with TLS: real ones.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use redis::{Client, FromRedisValue, cmd};
use skep_redis::{Place, Tls};
use skep_testkit::{Redis, RedisCluster, Sentinel, free_port, process::Process, redis_program};
use uuid::Uuid;

use super::stores::{PASSWORD, check_promises, store_as, store_at};
/// How long a program may take to start.
const START_TIME: Duration = Duration::from_secs(30);

/// A folder that is removed with the test.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("skep-{}", Uuid::new_v4()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

pub(super) fn start(folder: &Path, args: &[&str]) -> Process {
    Process::start(&redis_program().unwrap(), args, folder).unwrap()
}

/// Sends a command again and again until its response is as wanted.
pub(super) async fn until<T: FromRedisValue>(port: u16, command: &[&str], is_wanted: impl Fn(T) -> bool) {
    let client = Client::open(format!("redis://:{PASSWORD}@127.0.0.1:{port}/")).unwrap();
    let plain = Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
    let waiting = async {
        loop {
            for client in [&client, &plain] {
                if let Ok(mut connection) = client.get_multiplexed_async_connection().await {
                    let mut sent = cmd(command[0]);
                    sent.arg(&command[1..]);
                    if sent.query_async::<T>(&mut connection).await.is_ok_and(&is_wanted) {
                        return;
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(START_TIME, waiting).await.expect("Redis responds as it should");
}

#[tokio::test]
async fn sentinels_lead_to_the_primary() {
    let redis = Redis::with_password(PASSWORD).await;
    let sentinel = Sentinel::of(&redis).await;
    // The first one is down.
    let place = format!("redis+sentinel://127.0.0.1:{},{}/main", free_port(), sentinel.address());
    check_promises(store_at(place.parse().unwrap(), None).await).await;
}

#[tokio::test]
async fn the_node_of_a_cluster_that_has_the_keys_is_found() {
    let cluster = RedisCluster::with_password(PASSWORD).await;
    let place = |address: &str| format!("redis+cluster://{address}").parse().unwrap();
    // One of the two nodes does not have the keys.
    for address in cluster.addresses() {
        let store = store_at(place(&address), None).await;
        assert_eq!(store.spend(&format!("from-{address}"), Duration::from_secs(60)).await, Ok(true));
        assert_eq!(store.spend(&format!("from-{address}"), Duration::from_secs(60)).await, Ok(false));
    }
    check_promises(store_at(place(&cluster.addresses()[0]), None).await).await;
}

#[tokio::test]
async fn a_redis_with_tls_keeps_the_promises() {
    let redis = Redis::with_tls(PASSWORD).await;
    let mut place: Place = redis.address().parse().unwrap();
    place.tls = Some(Tls { authority: Some(redis.authority().into()), ..Tls::default() });
    check_promises(store_at(place, None).await).await;
}

/// A user that may use the keys of the server, and nothing else.
#[tokio::test]
async fn a_redis_with_users_is_used_as_the_one_that_is_configured() {
    let redis = Redis::with_password(PASSWORD).await;
    let port = redis.address().rsplit_once(':').unwrap().1.parse().unwrap();
    let rules =
        ["ACL", "SETUSER", "login", "on", ">of-login", "~thv:auth:*", "+@all", "-@admin", "-@dangerous"];
    until::<String>(port, &rules, |ok| ok == "OK").await;
    let place = || redis.address().parse().unwrap();
    check_promises(store_as(Some("login"), "of-login", place(), None)).await;
    for (user, password) in [(Some("login"), PASSWORD), (Some("other"), "of-login"), (None, "of-login")] {
        let error = store_as(user, password, place(), None).check().await.unwrap_err();
        assert!(error.contains("rejects the user or the password"), "{user:?}: {error}");
    }
}
