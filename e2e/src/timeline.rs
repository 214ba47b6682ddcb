//! Where the time goes until a server responds: when its pods are scheduled, run and are ready, and when its Services have them.

use std::{
    collections::BTreeMap,
    io::BufReader,
    process::{Child, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::SystemTime,
};

use anyhow::{Context, Result};
use serde_json::{Deserializer, Value};

use crate::{kubectl::Kubectl, manifests::USERS};

/// What is recorded, by `kubectl get --watch`, until it is dropped. Times in Kubernetes objects are whole seconds, so the time at
/// which an event arrives counts.
pub(crate) struct Timeline {
    watches: Vec<Child>,
    steps: Arc<Mutex<BTreeMap<String, SystemTime>>>,
}

impl Timeline {
    /// Records the steps of pods and Services whose names start with that of a server.
    pub(crate) fn start(kubectl: &Kubectl, server: &str) -> Result<Self> {
        let mut timeline = Self { watches: Vec::new(), steps: Arc::default() };
        for (kind, steps_of) in
            [("pods", pod_steps as fn(&Value) -> Vec<String>), ("endpointslices", service_steps)]
        {
            let mut watch = kubectl
                .command(&["get", kind, "-n", USERS, "--watch", "-o", "json"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .context("cannot start kubectl")?;
            let objects = BufReader::new(watch.stdout.take().context("kubectl has no output")?);
            timeline.watches.push(watch);
            let (steps, server) = (timeline.steps.clone(), server.to_owned());
            thread::spawn(move || {
                let objects = Deserializer::from_reader(objects).into_iter::<Value>();
                for object in objects.map_while(Result::ok).filter(|object| is_of(object, &server)) {
                    let mut known = steps.lock().unwrap_or_else(PoisonError::into_inner);
                    for step in steps_of(&object) {
                        known.entry(step).or_insert_with(SystemTime::now);
                    }
                }
            });
        }
        Ok(timeline)
    }

    /// Prints the steps until then, in their order.
    pub(crate) fn print(&self, begin: SystemTime, end: SystemTime) {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let mut steps: Vec<_> =
            steps.iter().filter(|(_, at)| **at <= end).map(|(step, at)| (at, step)).collect();
        steps.sort();
        for (at, step) in steps {
            let after = at.duration_since(begin).unwrap_or_default();
            println!("      {:5.2} s  {step}", after.as_secs_f64());
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        for watch in &mut self.watches {
            watch.kill().and_then(|()| watch.wait()).ok();
        }
    }
}

fn is_of(object: &Value, server: &str) -> bool {
    object["metadata"]["name"].as_str().is_some_and(|name| name.contains(server))
}

/// The server's own pod is that of a StatefulSet, the proxy's that of a Deployment.
fn pod_steps(pod: &Value) -> Vec<String> {
    let whose = match pod["metadata"]["ownerReferences"][0]["kind"].as_str() {
        Some("StatefulSet") => "the server's pod",
        _ => "the proxy's pod",
    };
    let list = |field: &str| pod["status"][field].as_array().cloned().unwrap_or_default();
    let is_true =
        |kind: &str| list("conditions").iter().any(|one| one["type"] == kind && one["status"] == "True");
    let runs = list("containerStatuses").iter().any(|one| one["state"]["running"].is_object());
    let steps = [
        (true, "exists"),
        (is_true("PodScheduled"), "is scheduled"),
        (runs, "runs"),
        (is_true("Ready"), "is ready"),
    ];
    steps.into_iter().filter(|(reached, _)| *reached).map(|(_, step)| format!("{whose} {step}")).collect()
}

fn service_steps(slice: &Value) -> Vec<String> {
    let endpoints = slice["endpoints"].as_array();
    let ready = endpoints.into_iter().flatten().any(|one| one["conditions"]["ready"] == true);
    let service = slice["metadata"]["labels"]["kubernetes.io/service-name"].as_str().unwrap_or_default();
    if ready { vec![format!("Service {service} has an endpoint")] } else { Vec::new() }
}
