//! The calls of a cluster's proxies and virtual MCP servers, as their pods offer them.
//!
//! Pods are read while a page is open, and not otherwise. Each gets a token of the console's own ServiceAccount that is good for
//! the calls of its own object and for nothing else: neither the token of a user nor one for the API server reaches a pod.

mod endpoints;
mod pod;

use std::{collections::BTreeMap, sync::Arc};

use futures::future::join;
use kube::Client;
use skep_gateway::{ConfigError, outbound};
use tokio::{
    sync::{broadcast::error::RecvError, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tracing::warn;

use super::token::{Account, Tokens};
use crate::{CallLogs, Objects, limits};
use endpoints::{Endpoint, Slices};
use pod::Pod;

/// Reads the calls of all servers in these namespaces, or in all, for ever. Pods accept the tokens of this account.
pub async fn follow_calls(
    client: Client,
    namespaces: Vec<String>,
    account: Account,
    objects: Arc<Objects>,
    logs: Arc<CallLogs>,
) -> Result<(), ConfigError> {
    let scopes = super::scopes(namespaces);
    let requests = Arc::new(outbound::Client::new(false)?);
    let tokens = Arc::new(Tokens::new(client.clone(), account));
    let mut viewers = logs.viewers();
    while viewers.wait_for(|count| *count > 0).await.is_ok() {
        let (found, slices) = watch::channel(Slices::default());
        let reading = join(
            endpoints::follow(&client, &scopes, &found),
            read(slices, &objects, &logs, |endpoint| {
                let log = logs.of(&endpoint.key);
                Pod::new(endpoint.clone(), log, tokens.clone(), requests.clone())
            }),
        );
        tokio::select! {
            _ = reading => {}
            () = requests.expire() => {}
            () = unviewed(&mut viewers) => {}
        }
    }
    Ok(())
}

/// Waits until no page has been open for some time.
async fn unviewed(viewers: &mut watch::Receiver<usize>) {
    while viewers.wait_for(|count| *count == 0).await.is_ok() {
        let viewed = viewers.wait_for(|count| *count > 0);
        if timeout(limits::CALLS_LINGER, viewed).await.is_err() {
            return;
        }
    }
}

/// Reads all pods that there are, for ever.
async fn read(
    mut slices: watch::Receiver<Slices>,
    objects: &Objects,
    logs: &CallLogs,
    pod: impl Fn(&Endpoint) -> Pod,
) {
    let mut changes = objects.changes();
    let mut readers: BTreeMap<Endpoint, AbortOnDrop> = BTreeMap::new();
    loop {
        let mut wanted = endpoints::of_objects(&objects.all(), &slices.borrow_and_update());
        if wanted.len() > limits::READERS {
            warn!(pods = wanted.len(), read = limits::READERS, "the calls of some pods are not read");
            wanted = wanted.into_iter().take(limits::READERS).collect();
        }
        readers.retain(|endpoint, _| wanted.contains(endpoint));
        logs.keep(|key| objects.find(key).is_some());
        for endpoint in wanted {
            readers.entry(endpoint).or_insert_with_key(|endpoint| {
                AbortOnDrop(tokio::spawn(pod(endpoint).read()).abort_handle())
            });
        }
        tokio::select! {
            changed = slices.changed() => if changed.is_err() { return },
            change = changes.recv() => if matches!(change, Err(RecvError::Closed)) { return },
        }
        sleep(limits::CALLS_COLLECT).await;
        // What came meanwhile is considered now.
        changes = changes.resubscribe();
    }
}

/// A task that ends with its owner.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
