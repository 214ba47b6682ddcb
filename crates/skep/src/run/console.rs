//! The console of a run: what its servers are and do, as objects with a status.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use serde_json::{Value, json};
use skep_console::{Access, CallLogs, Console, Key, LocalAccess, Objects, Workers, serve};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tracing::{Instrument, error_span, warn};

use super::{discovery::stopped, logs, machine::listener, running::State, table::Row};
use crate::manifests::Manifests;

/// A console that runs.
pub(super) struct RunConsole {
    objects: Arc<Objects>,
    pub(super) calls: Arc<CallLogs>,
    /// The address for the user, with the token that lets them in.
    pub(super) url: String,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RunConsole {
    /// Starts it on this port of 127.0.0.1, or on one that follows from the name of the run.
    pub(super) fn start(port: Option<u16>, run: &str) -> anyhow::Result<Self> {
        let listener = listener(port, &format!("console/{run}"))
            .map_err(|error| anyhow::anyhow!("{}", error.message))
            .context("cannot start the console")?;
        let address = listener.local_addr()?;
        let access = LocalAccess::new(address.port()).context("the system has no random numbers")?;
        let url = format!("http://{address}/{}", access.fragment());
        let (objects, calls) = (Arc::new(Objects::default()), Arc::new(CallLogs::default()));
        let console = Arc::new(Console::new(objects.clone(), calls.clone(), Access::Local(access))?);
        let (stop, is_stopped) = watch::channel(false);
        let socket = TcpListener::from_std(listener)?;
        let serving = async move {
            if let Err(error) = serve(socket, console, Workers::default(), stopped(is_stopped)).await {
                warn!(%error, "the console stopped");
            }
        };
        let task = tokio::spawn(serving.instrument(error_span!(logs::SERVER, message = "console")));
        Ok(Self { objects, calls, url, stop, task })
    }

    /// Shows these objects, of which some run.
    pub(super) fn show(&self, manifests: &Manifests, rows: &[Row]) {
        let states: BTreeMap<&Key, &Row> = rows.iter().map(|row| (&row.key, row)).collect();
        let shown = manifests.objects.iter().filter(|object| is_shown(object)).filter_map(|object| {
            let mut manifest = serde_json::to_value(object).ok()?;
            let key = key_of(object)?;
            if let Some(row) = states.get(&key) {
                manifest["status"] = status(row);
            }
            Some(manifest)
        });
        self.objects.replace(shown.collect());
        self.calls.keep(|key| states.contains_key(key));
    }

    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.ok();
    }
}

fn key_of(object: &kube::core::DynamicObject) -> Option<Key> {
    let (types, metadata) = (object.types.as_ref()?, &object.metadata);
    Some(Key::new(&types.kind, metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref()?))
}

/// Objects of the API are shown. Others may be Secrets.
fn is_shown(object: &kube::core::DynamicObject) -> bool {
    let group = |types: &kube::core::TypeMeta| types.api_version.split('/').next() == Some(skep_api::GROUP);
    object.types.as_ref().is_some_and(group)
}

/// The status that the object would have in a cluster, as far as it is known here.
fn status(Row { place, state, .. }: &Row) -> Value {
    let State { phase, url, tools, message, backends, .. } = state;
    let mut status = json!({"phase": phase.as_str(), "url": url});
    if !message.is_empty() {
        status["message"] = format!("{place}{message}").into();
    }
    if let Some(tools) = tools {
        status["server"] = json!({"toolCount": tools.len()});
    }
    if !backends.is_empty() {
        status["discoveredBackends"] = json!(backends);
    }
    status
}
