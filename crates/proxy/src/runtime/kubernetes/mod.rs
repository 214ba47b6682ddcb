//! Running a server in the cluster that the proxy itself runs in: a StatefulSet with its Services.
//!
//! They are computed from the RunConfig ([`stateful_set`], [`services`]) and applied as one decision, which a proxy of a
//! newer generation wins in any order. The readiness of the pods is watched: see [`Readiness`]. The proxy attaches to
//! the pod of a stdio server: see [`Attachment`].
//!
//! The StatefulSet outlives the proxy: the operator, which owns it, deletes it.

mod apply;
mod attach;
mod attached;
mod error;
mod gate;
mod keep;
mod manifest;
mod pace;
mod place;
mod platform;
mod pods;
mod report;
mod rollout;
mod starting;
mod wire;

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{Api, Client};
use skep_config::RunConfig;
use tracing::info;

use apply::Objects;
pub use apply::Outcome;
pub use attach::Attachment;
pub use error::RuntimeError;
use keep::Keeper;
pub use manifest::{ManifestError, services, stateful_set};
pub use platform::Platform;
pub use report::Reporter;
pub use rollout::{Phase, Readiness};
pub use starting::{Later, Starting};

/// A namespace of a cluster, to run servers in.
#[derive(Clone)]
pub struct Kubernetes {
    client: Client,
    namespace: String,
    platform: Platform,
}

impl Kubernetes {
    /// The namespace that the process runs in, by its environment.
    pub async fn connect(env: &BTreeMap<String, String>) -> Result<Self, RuntimeError> {
        let config = place::config(env).await?;
        let namespace = place::namespace(env, &config);
        let client = Client::try_from(config).map_err(|error| RuntimeError::Config(error.to_string()))?;
        let platform = Platform::of(&client, env).await?;
        Ok(Self { client, namespace, platform })
    }

    /// The namespace of this name.
    pub fn new(client: Client, namespace: impl Into<String>, platform: Platform) -> Self {
        Self { client, namespace: namespace.into(), platform }
    }

    /// Runs the server: applies its objects, unless those of a newer generation exist, and watches it from now on. What others change
    /// in its objects is restored as long as someone follows its readiness.
    pub async fn run(&self, config: &RunConfig) -> Result<Server, RuntimeError> {
        let objects = Objects {
            stateful_set: stateful_set(config, self.platform)?,
            services: services(config)?,
            generation: config.mcpserver_generation,
            platform: self.platform,
        };
        let applied = apply::apply(&self.client, &self.namespace, &objects, None).await?;
        match &applied.outcome {
            Outcome::Created(_) | Outcome::Applied(_) => {
                info!(generation = config.mcpserver_generation, "server applied");
            }
            Outcome::HeldBack(_) => {
                info!(
                    generation = config.mcpserver_generation,
                    "server not applied: it is of a newer generation"
                );
            }
        }
        let stateful_sets = Api::namespaced(self.client.clone(), &self.namespace);
        let outcome = applied.outcome.clone();
        let (readiness, states) = Readiness::of(stateful_sets, outcome.stateful_set());
        if !matches!(outcome, Outcome::HeldBack(_)) {
            let (client, namespace) = (self.client.clone(), self.namespace.clone());
            tokio::spawn(Keeper { client, namespace, objects }.keep(applied, states));
        }
        Ok(Server { pods: Api::namespaced(self.client.clone(), &self.namespace), outcome, readiness })
    }
}

/// A server that runs.
pub struct Server {
    pods: Api<Pod>,
    outcome: Outcome,
    readiness: Readiness,
}

impl Server {
    /// Whether its objects were applied, or a newer generation held them back. Either way there is a server.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The StatefulSet as it was when the server was run.
    pub fn stateful_set(&self) -> &StatefulSet {
        self.outcome.stateful_set()
    }

    /// Its readiness.
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Attaches to a stdio server.
    pub fn attachment(&self) -> Attachment {
        Attachment::to(self.pods.clone(), self.stateful_set())
    }
}
