//! Redis fails over, by Sentinel: real ones. A flow goes on, or fails with a page, and nothing is spent twice.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use redis::{Client, cmd};
use skep_testkit::{free_port, process::Process};

use super::{
    flow::{Flow, STEPS, Servers},
    redis_places::{Folder, start, until},
    stores::{PASSWORD, store_at},
    world::World,
};
use crate::store::Store;

/// Two Redis, of which one is the primary, and a Sentinel.
struct Group {
    nodes: Vec<(u16, Process)>,
    sentinel: u16,
    _sentinel: Process,
    _folder: Folder,
}

impl Group {
    async fn start() -> Self {
        let (folder, sentinel) = (Folder::new(), free_port());
        let ports = [free_port(), free_port()];
        let mut nodes = Vec::new();
        for port in ports {
            let place = folder.0.join(port.to_string());
            std::fs::create_dir(&place).unwrap();
            let (number, path) = (port.to_string(), place.to_str().unwrap());
            let mut args = vec!["--port", &number, "--bind", "127.0.0.1", "--dir", path, "--save", ""];
            args.extend([
                "--requirepass",
                PASSWORD,
                "--masterauth",
                PASSWORD,
                "--repl-diskless-sync-delay",
                "0",
            ]);
            let primary = format!("127.0.0.1 {}", ports[0]);
            if port != ports[0] {
                args.extend(["--replicaof", &primary]);
            }
            nodes.push((port, start(&place, &args)));
        }
        let config = format!(
            "port {sentinel}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\nsentinel auth-pass main {PASSWORD}\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 500\n",
            ports[0]
        );
        let file = folder.write("sentinel.conf", &config);
        let process = start(&folder.0, &[&file, "--sentinel"]);
        let group = Self { nodes, sentinel, _sentinel: process, _folder: folder };
        group.wait_until_replicated(ports[0]).await;
        group
    }

    async fn store(&self) -> Arc<dyn Store> {
        let place = format!("redis+sentinel://127.0.0.1:{}/main", self.sentinel);
        store_at(place.parse().unwrap(), None).await
    }

    /// Waits until the other one has what this primary has.
    async fn wait_until_replicated(&self, primary: u16) {
        until::<String>(primary, &["INFO", "replication"], |info| {
            info.contains("role:master") && info.contains("state=online")
        })
        .await;
        let client = Client::open(format!("redis://:{PASSWORD}@127.0.0.1:{primary}/")).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        // What was written before this has been replicated, too.
        loop {
            cmd("SET").arg("last").arg("1").query_async::<()>(&mut connection).await.unwrap();
            let confirmed: i64 = cmd("WAIT").arg(1).arg(100).query_async(&mut connection).await.unwrap();
            if confirmed == 1 {
                return;
            }
        }
    }

    async fn wait_for_primary(&self, port: u16) {
        let expected = port.to_string();
        until::<Vec<String>>(self.sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"], |address| {
            address.get(1) == Some(&expected)
        })
        .await;
    }

    /// Makes the replica the primary, and the primary its replica. The Sentinel learns of it at once: by itself it would wait
    /// for ten seconds before it demotes a primary that is alive.
    async fn swap(&mut self) {
        self.wait_until_replicated(self.nodes[0].0).await;
        self.nodes.swap(0, 1);
        let (new, old) = (self.nodes[0].0, self.nodes[1].0);
        let (port, is_ok) = (new.to_string(), |answer: String| answer == "OK");
        until(new, &["REPLICAOF", "NO", "ONE"], is_ok).await;
        until(old, &["REPLICAOF", "127.0.0.1", &port], is_ok).await;
        until::<String>(old, &["INFO", "replication"], |info| info.contains("role:slave")).await;
        until(self.sentinel, &["SENTINEL", "REMOVE", "main"], is_ok).await;
        until(self.sentinel, &["SENTINEL", "MONITOR", "main", "127.0.0.1", &port, "1"], is_ok).await;
        until(self.sentinel, &["SENTINEL", "SET", "main", "auth-pass", PASSWORD], is_ok).await;
        self.wait_until_replicated(new).await;
    }

    /// Ends the primary, as a crash would.
    async fn kill_primary(&mut self) {
        self.wait_until_replicated(self.nodes[0].0).await;
        until::<Vec<Vec<String>>>(self.sentinel, &["SENTINEL", "REPLICAS", "main"], |replicas| {
            replicas.iter().any(|replica| {
                replica.windows(2).any(|pair| pair == ["master-link-status", "ok"])
                    && replica.windows(2).any(|pair| pair == ["flags", "slave"])
            })
        })
        .await;
        drop(self.nodes.remove(0));
    }
}

#[tokio::test]
async fn a_flow_goes_on_when_redis_fails_over_between_its_steps() {
    let mut group = Group::start().await;
    let (servers, provider) = Servers::new().await;
    let world = World { server: servers.start(group.store().await).await, provider };
    let mut flow = Flow::new("ann");
    for step in STEPS {
        if ["first provider", "code", "refresh"].contains(&step) {
            group.swap().await;
        }
        flow.step(&servers, &world, step).await.unwrap_or_else(|failure| panic!("{step}: {failure:?}"));
    }
    group.swap().await;
    flow.reuse(&world).await;
}

#[tokio::test]
async fn a_user_who_comes_back_while_redis_fails_over_sees_a_page_and_goes_on_after_it() {
    let mut group = Group::start().await;
    let (servers, provider) = Servers::new().await;
    let world = World { server: servers.start(group.store().await).await, provider };
    let mut flow = Flow::new("ann");
    for step in &STEPS[..3] {
        flow.step(&servers, &world, step).await.unwrap();
    }
    group.kill_primary().await;
    let failure = flow.step(&servers, &world, "first provider").await.unwrap_err();
    assert_eq!(failure.status, StatusCode::SERVICE_UNAVAILABLE, "{failure:?}");
    assert!(failure.body.contains("Try again in a moment"), "{failure:?}");
    group.wait_for_primary(group.nodes[0].0).await;
    // It has not been spent.
    for step in &STEPS[3..] {
        while let Err(failure) = flow.step(&servers, &world, step).await {
            assert_eq!(failure.status, StatusCode::SERVICE_UNAVAILABLE, "{step}: {failure:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    flow.reuse(&world).await;
}
