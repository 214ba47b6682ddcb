//! What a status says of a proxy, whatever it stands in front of.

use super::{LivePod, Proxied};
use crate::{
    facts::{DeploymentFacts, PodState},
    reference::{Reference, config_hash, object},
};

/// How pods are doing, taken together.
pub(crate) enum Pods {
    /// None is wanted.
    None,
    /// At least one is ready.
    Running,
    /// None is ready.
    NotReady(NotReady),
}

/// Why no pod is ready.
pub(crate) enum NotReady {
    /// One will not be by waiting.
    Failed(String),
    /// One cannot be for now, and may be when somebody helps.
    Stuck(String),
    /// None is yet.
    OnTheirWay(String),
}

impl NotReady {
    /// Why, when these pods wait for others that are not ready either.
    pub(crate) fn because_of(self, others: Self) -> Self {
        match self {
            Self::OnTheirWay(_) => others,
            why => why,
        }
    }
}

/// How the pods of a Deployment are doing. `whose` is who they belong to, for messages.
pub(crate) fn pods_together(deployment: Option<&DeploymentFacts>, pods: &[LivePod], whose: &str) -> Pods {
    if deployment.is_some_and(|deployment| deployment.wanted == 0) {
        return Pods::None;
    }
    if running(pods) > 0 {
        return Pods::Running;
    }
    let refused = deployment.and_then(|deployment| deployment.refused.as_ref());
    Pods::NotReady(match (not_ready(pods, whose), refused) {
        (NotReady::Stuck(_) | NotReady::OnTheirWay(_), Some(message)) => {
            NotReady::Failed(format!("the {whose}'s pods cannot be made: {message}"))
        }
        (why, _) => why,
    })
}

/// Why none of these pods is ready.
pub(crate) fn not_ready(pods: &[LivePod], whose: &str) -> NotReady {
    let failed = pods.iter().find_map(|pod| match &pod.state {
        PodState::Failed(reason) => Some(format!("the {whose}'s pod fails: {reason}")),
        _ => None,
    });
    let stuck = pods.iter().find_map(|pod| match &pod.state {
        PodState::Stuck(why) => Some(format!("the {whose}'s pod {} waits: {why}", pod.name)),
        _ => None,
    });
    match (failed, stuck) {
        (Some(message), _) => NotReady::Failed(message),
        (None, Some(message)) => NotReady::Stuck(message),
        (None, None) => NotReady::OnTheirWay(format!("the {whose}'s pods are on their way")),
    }
}

/// How many of the pods are ready.
pub(crate) fn running(pods: &[LivePod]) -> i32 {
    let running = pods.iter().filter(|pod| pod.state == PodState::Running).count();
    running.try_into().unwrap_or(i32::MAX)
}

impl Proxied {
    /// How the proxy's pods are doing.
    pub(crate) fn pods_together(&self) -> Pods {
        pods_together(self.deployment.as_ref(), &self.pods, "proxy")
    }

    /// How many of the proxy's pods are ready.
    pub(crate) fn running(&self) -> i32 {
        running(&self.pods)
    }

    /// How many of the proxy's pods there are, if any.
    pub(crate) fn replicas(&self) -> Option<i32> {
        self.deployment.as_ref().map(|deployment| deployment.replicas).filter(|replicas| *replicas > 0)
    }
}

/// The hash of a configuration that is in use.
pub(crate) fn hash<K, S: serde::Serialize>(
    reference: &Option<Reference<K>>,
    spec: impl FnOnce(&K) -> &S,
) -> Option<String> {
    object(reference).map(|config| config_hash(spec(config)))
}
