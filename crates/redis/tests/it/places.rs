//! Redis with TLS, behind Sentinels and as a cluster: real ones.

use skep_redis::{Cause, Place, Redis, RedisUnavailable, Settings, Tls, cmd};
use skep_testkit::{RedisCluster, Sentinel, free_port};

use crate::connection::{PASSWORD, settings};

async fn increment(client: &Redis, key: &str) -> Result<u64, RedisUnavailable> {
    client.query(cmd("INCR").arg(key)).await
}

#[tokio::test]
async fn redis_with_tls_is_used_if_its_certificate_is_trusted() {
    let redis = skep_testkit::Redis::with_tls(PASSWORD).await;
    let address = redis.address();
    let client = |tls: Option<Tls>| {
        let place = Place { tls, ..address.parse().unwrap() };
        Redis::new(Settings { place, ..settings(&address) }).unwrap()
    };
    let authority = Some(redis.authority().into());
    client(Some(Tls { authority, ..Tls::default() })).check().await.unwrap();
    client(Some(Tls { is_insecure: true, ..Tls::default() })).check().await.unwrap();
    let unknown = increment(&client(Some(Tls::default())), "key").await;
    assert_eq!(unknown.unwrap_err().0, Cause::Connection);
    let without_tls = increment(&client(None), "key").await;
    assert_eq!(without_tls.unwrap_err().0, Cause::Connection);
    let authority = Some(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".into());
    let tls = Some(Tls { authority, ..Tls::default() });
    let place = Place { tls, ..address.parse().unwrap() };
    assert!(Redis::new(Settings { place, ..settings(&address) }).is_err(), "it is not a certificate");
}

#[tokio::test]
async fn primary_is_found_by_the_sentinel_that_responds() {
    let redis = skep_testkit::Redis::with_password(PASSWORD).await;
    let sentinel = Sentinel::of(&redis).await;
    let sentinels = format!("127.0.0.1:{},{}", free_port(), sentinel.address());
    let place = |name| format!("redis+sentinel://{sentinels}/{name}");
    let client = Redis::new(Settings { db: 2, ..settings(&place(Sentinel::PRIMARY)) }).unwrap();
    assert_eq!(increment(&client, "key").await.unwrap(), 1);
    assert!(increment(&Redis::new(settings(&place("other"))).unwrap(), "key").await.is_err());
}

#[tokio::test]
async fn node_of_a_cluster_with_the_keys_is_found_from_any_node() {
    let cluster = RedisCluster::with_password(PASSWORD).await;
    for (address, expected) in cluster.addresses().into_iter().zip([1, 2]) {
        let client = Redis::new(settings(&format!("redis+cluster://{address}"))).unwrap();
        assert_eq!(increment(&client, "thv:{a}:one").await.unwrap(), expected);
        assert_eq!(increment(&client, "thv:{a}:two").await.unwrap(), expected);
    }
}
