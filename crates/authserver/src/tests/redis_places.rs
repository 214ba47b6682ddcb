//! Redis behind Sentinels, as a cluster, and with TLS: real ones.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redis::{Client, FromRedisValue, cmd};
use skep_testkit::{Redis, free_port, process::Process, redis_program};
use uuid::Uuid;

use super::stores::{PASSWORD, check_promises, store_as, store_at};
use crate::config::{RedisPlace, RedisTls};

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
    let (redis, folder, port) = (Redis::with_password(PASSWORD).await, Folder::new(), free_port());
    let (host, primary) =
        redis.address().rsplit_once(':').map(|(host, port)| (host.to_owned(), port.to_owned())).unwrap();
    let config = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor main {host} {primary} 1\nsentinel auth-pass main {PASSWORD}\n"
    );
    let file = folder.write("sentinel.conf", &config);
    let _sentinel = start(&folder.0, &[&file, "--sentinel"]);
    until::<String>(port, &["PING"], |pong| pong == "PONG").await;
    // The first one is down.
    let addresses = vec![format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{port}")];
    let place = RedisPlace::Sentinels { primary: "main".into(), addresses, db: 2, tls: None };
    check_promises(store_at(place, None, None).await).await;
}

#[tokio::test]
async fn the_node_of_a_cluster_that_has_the_keys_is_found() {
    let (folder, ports) = (Folder::new(), [free_port(), free_port()]);
    let mut nodes = Vec::new();
    for port in ports {
        let (port, place) = (port.to_string(), folder.0.join(port.to_string()));
        fs::create_dir(&place).unwrap();
        let bus = free_port().to_string();
        let path = place.to_str().unwrap();
        let args = [
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &bus,
            "--dir",
            path,
            "--requirepass",
            PASSWORD,
            "--save",
            "",
        ];
        nodes.push((start(&place, &args), bus));
    }
    for (index, port) in ports.iter().enumerate() {
        let (first, last) = if index == 0 { ("0", "8191") } else { ("8192", "16383") };
        until::<String>(*port, &["PING"], |pong| pong == "PONG").await;
        until::<String>(*port, &["CLUSTER", "ADDSLOTSRANGE", first, last], |ok| ok == "OK").await;
    }
    let (other, bus) = (ports[1].to_string(), &nodes[1].1);
    until::<String>(ports[0], &["CLUSTER", "MEET", "127.0.0.1", &other, bus], |ok| ok == "OK").await;
    for port in ports {
        until::<String>(port, &["CLUSTER", "INFO"], |info| info.contains("cluster_state:ok")).await;
    }
    // One of the two nodes does not have the keys.
    for port in ports {
        let store = store_at(RedisPlace::Cluster(format!("127.0.0.1:{port}")), None, None).await;
        assert_eq!(store.spend(&format!("from-{port}"), Duration::from_secs(60)).await, Ok(true));
        assert_eq!(store.spend(&format!("from-{port}"), Duration::from_secs(60)).await, Ok(false));
    }
    let store = store_at(RedisPlace::Cluster(format!("127.0.0.1:{}", ports[0])), None, None).await;
    check_promises(store).await;
}

#[tokio::test]
async fn a_redis_with_tls_is_used_if_its_certificate_is_trusted() {
    let (folder, port) = (Folder::new(), free_port());
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let trusted = folder.write("ca.pem", &authority.pem());
    let (certificate, key) =
        (folder.write("cert.pem", &server.pem()), folder.write("key.pem", &key.serialize_pem()));
    let number = port.to_string();
    let args = [
        "--port",
        "0",
        "--tls-port",
        &number,
        "--bind",
        "127.0.0.1",
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &trusted,
        "--tls-auth-clients",
        "no",
        "--requirepass",
        PASSWORD,
        "--save",
        "",
    ];
    let _redis = start(&folder.0, &args);
    let listening = async {
        while tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(START_TIME, listening).await.expect("Redis listens");
    let place = || RedisPlace::Address(format!("127.0.0.1:{port}"));
    let tls = |authority: Option<&str>, is_insecure| RedisTls {
        is_insecure,
        authority: authority.map(|authority| authority.as_bytes().to_vec()),
    };
    let pem = authority.pem();
    check_promises(store_at(place(), Some(tls(Some(&pem), false)), None).await).await;
    let trusts = async |tls| store_at(place(), tls, None).await.check().await;
    assert!(trusts(Some(tls(None, false))).await.is_err(), "an unknown certificate is trusted");
    assert!(trusts(None).await.is_err());
    assert!(trusts(Some(tls(None, true))).await.is_ok());
}

/// A user that may use the keys of the server, and nothing else.
#[tokio::test]
async fn a_redis_with_users_is_used_as_the_one_that_is_configured() {
    let redis = Redis::with_password(PASSWORD).await;
    let port = redis.address().rsplit_once(':').unwrap().1.parse().unwrap();
    let rules =
        ["ACL", "SETUSER", "login", "on", ">of-login", "~thv:auth:*", "+@all", "-@admin", "-@dangerous"];
    until::<String>(port, &rules, |ok| ok == "OK").await;
    let place = || RedisPlace::Address(redis.address());
    check_promises(store_as(Some("login"), "of-login", place(), None, None)).await;
    for (user, password) in [(Some("login"), PASSWORD), (Some("other"), "of-login"), (None, "of-login")] {
        let error = store_as(user, password, place(), None, None).check().await.unwrap_err();
        assert!(error.contains("rejects the user or the password"), "{user:?}: {error}");
    }
}
