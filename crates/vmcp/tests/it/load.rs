//! Faults of what replicas share, and of replicas, under load: a real Redis, and real processes.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_testkit::{Redis, process::Process};
use skep_vmcp::Settings;

use crate::{
    Replica, Server,
    backend::{Backend, Mood},
    client::{Client, text},
    until,
};

const FOLDER: &str = "SKEP_TEST_REPLICA";
/// How long a call may take: twice what Redis and the backend may.
const CALL_TIME: Duration = Duration::from_secs(8);
const CLIENTS: usize = 8;
/// How many calls of each client are made before, during and after a fault.
const CALLS: usize = 15;

fn more(redis: &Redis) -> String {
    format!(
        "operational: {{timeouts: {{default: 1s}}}}\n\
         sessionStorage: {{provider: redis, address: \"{}\"}}\n",
        redis.address()
    )
}

/// A client that calls as fast as it can.
struct Caller {
    client: Client,
    /// Its session at the backend.
    session: String,
    done: AtomicUsize,
}

impl Caller {
    async fn start(address: SocketAddr) -> Self {
        let client = Client::start(address, json!({})).await;
        let session = text(&client.call("a_whoami").await).0.to_owned();
        Self { client, session, done: AtomicUsize::new(0) }
    }

    /// Whether a response is the right one, in the same session at the backend.
    fn is_right(&self, status: StatusCode, response: &Value) -> bool {
        status == StatusCode::OK && text(response) == (&*self.session, false)
    }
}

/// Whether a response says that Redis is unavailable.
fn names_redis(status: StatusCode, response: &Value) -> bool {
    status == StatusCode::SERVICE_UNAVAILABLE
        && response["error"]["message"].as_str().is_some_and(|message| message.contains("session store"))
}

/// Waits until each has made some more calls.
async fn calls_of_all(callers: &[Caller]) {
    let before: Vec<usize> = callers.iter().map(|caller| caller.done.load(Ordering::Relaxed)).collect();
    let is_done = |(caller, before): (&Caller, &usize)| caller.done.load(Ordering::Relaxed) >= before + CALLS;
    until(|| callers.iter().zip(&before).all(is_done)).await;
}

/// A property: while Redis is killed and comes back, every call ends within its time, with the right response or an error that has
/// the reason; sessions go on where they are known, and everywhere once it is back.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_outlive_a_redis_that_is_killed_and_comes_back_under_load() {
    let (mut redis, backend) = (Redis::start().await, Backend::start().await);
    let config = more(&redis);
    let (first, second) =
        tokio::join!(Replica::before(&backend, &config), Replica::before(&backend, &config));
    let callers = join_all(
        (0..CLIENTS)
            .map(|number| Caller::start(if number % 2 == 0 { first.address } else { second.address })),
    )
    .await;
    let (has_redis, has_ended) = (AtomicBool::new(true), AtomicBool::new(false));
    let load = callers.iter().enumerate().map(|(number, caller)| {
        let (first, second, has_redis, has_ended) = (&first, &second, &has_redis, &has_ended);
        async move {
            let elsewhere = caller.client.at(if number % 2 == 0 { second.address } else { first.address });
            for turn in 0.. {
                // Each third call goes to the replica that did not start the session.
                let is_elsewhere = turn % 3 == 2;
                let client = if is_elsewhere { &elsewhere } else { &caller.client };
                let had_redis = has_redis.load(Ordering::SeqCst);
                let started = Instant::now();
                let (status, response) = client.try_call("a_whoami").await.unwrap();
                let took = started.elapsed();
                assert!(took < CALL_TIME, "{took:?} {response}");
                let always = had_redis && has_redis.load(Ordering::SeqCst);
                let is_known = caller.is_right(status, &response);
                let is_explained = !always && names_redis(status, &response);
                assert!(is_known || is_explained, "{status} {response}");
                caller.done.fetch_add(1, Ordering::Relaxed);
                if has_ended.load(Ordering::SeqCst) {
                    break;
                }
            }
        }
    });
    let faults = async {
        for _ in 0..2 {
            calls_of_all(&callers).await;
            has_redis.store(false, Ordering::SeqCst);
            redis.kill();
            calls_of_all(&callers).await;
            let start = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
            }});
            let refused = Client::without_session(first.address).send(Method::POST, Some(&start)).await;
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "none can start");
            redis.start_again().await;
            // It is used again once the replicas have tried: a session that one of them does not know shows that.
            for replica in [&first, &second] {
                let uses_redis = async || {
                    let started =
                        Client::without_session(replica.address).send(Method::POST, Some(&start)).await;
                    started.status() == StatusCode::OK
                };
                while !uses_redis().await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            has_redis.store(true, Ordering::SeqCst);
        }
        calls_of_all(&callers).await;
        has_ended.store(true, Ordering::SeqCst);
    };
    tokio::join!(join_all(load), faults);
    for caller in &callers {
        for replica in [&first, &second] {
            let (status, response) = caller.client.at(replica.address).try_call("a_whoami").await.unwrap();
            assert!(caller.is_right(status, &response), "{response}");
        }
    }
}

/// The process of a replica, which runs this function alone.
#[tokio::test]
#[ignore = "it is a process of other tests"]
async fn replica_process() {
    let Ok(folder) = std::env::var(FOLDER).map(PathBuf::from) else { return };
    let config = fs::read_to_string(folder.join("config.yaml")).unwrap();
    let server = Server::run(Settings::parse(&config).unwrap(), None, None).await;
    let written = folder.join("address.new");
    fs::write(&written, server.address.to_string()).unwrap();
    fs::rename(&written, folder.join("address")).unwrap();
    std::future::pending::<()>().await;
}

/// A replica as a process of its own.
struct ReplicaProcess {
    folder: PathBuf,
    address: SocketAddr,
    process: Option<Process>,
}

impl ReplicaProcess {
    async fn start(name: &str, backend: &Backend, more: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("skep-replica-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let config = Server::config(&[("a", backend.url())], more);
        fs::write(folder.join("config.yaml"), config).unwrap();
        let mut args = vec![format!("{FOLDER}={}", folder.display())];
        args.push(std::env::current_exe().unwrap().display().to_string());
        args.extend(["--exact", "load::replica_process", "--ignored", "--nocapture"].map(str::to_owned));
        let process = Some(Process::start(Path::new("/usr/bin/env"), args, &folder).unwrap());
        let file = folder.join("address");
        until(|| file.exists()).await;
        let address = fs::read_to_string(&file).unwrap().parse().unwrap();
        Self { folder, address, process }
    }

    fn kill(&mut self) {
        self.process = None;
    }
}

impl Drop for ReplicaProcess {
    fn drop(&mut self) {
        self.process = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_go_on_at_the_other_replica_when_one_is_killed_under_load() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let config = more(&redis);
    let (mut lost, rest) = tokio::join!(
        ReplicaProcess::start("lost", &backend, &config),
        ReplicaProcess::start("rest", &backend, &config)
    );
    let callers = join_all(
        (0..CLIENTS).map(|number| Caller::start(if number % 2 == 0 { lost.address } else { rest.address })),
    )
    .await;
    // Calls are in flight when it is killed.
    backend.set(Mood::Slow(20));
    let (has_ended, is_killed) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let moved = AtomicUsize::new(0);
    let load = callers.iter().map(|caller| async {
        let mut elsewhere = None;
        while !has_ended.load(Ordering::SeqCst) {
            let started = Instant::now();
            let outcome = elsewhere.as_ref().unwrap_or(&caller.client).try_call("a_whoami").await;
            let took = started.elapsed();
            assert!(took < CALL_TIME, "{took:?}");
            match outcome {
                Ok((status, response)) => {
                    assert!(caller.is_right(status, &response), "{status} {response}");
                    caller.done.fetch_add(1, Ordering::Relaxed);
                }
                // The connection has ended with the process: the client goes on at the other one, once.
                Err(error) => {
                    assert!(is_killed.load(Ordering::SeqCst) && elsewhere.is_none(), "{error}");
                    moved.fetch_add(1, Ordering::Relaxed);
                    elsewhere = Some(caller.client.at(rest.address));
                }
            }
        }
    });
    let fault = async {
        calls_of_all(&callers).await;
        is_killed.store(true, Ordering::SeqCst);
        lost.kill();
        calls_of_all(&callers).await;
        has_ended.store(true, Ordering::SeqCst);
    };
    tokio::join!(join_all(load), fault);
    assert_eq!(moved.load(Ordering::Relaxed), CLIENTS / 2, "those of the replica that was killed");
    // None was opened again: each client has one, and each replica had one to read the lists.
    assert_eq!(backend.sessions(), CLIENTS + 2);
}
