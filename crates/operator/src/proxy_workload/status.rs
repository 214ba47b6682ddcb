//! The state of a proxy's pods, for a status.

use skep_api::kinds::{MCPRemoteProxyStatus, MCPServerStatus};

use super::{LivePod, ProxyWorkload};
use crate::resources::facts::{DeploymentFacts, PodState};

/// The state of a workload's pods, taken together.
pub(crate) enum PodsState {
    /// The workload is scaled to zero.
    ScaledToZero,
    /// At least one is ready.
    Running,
    /// None is ready.
    NotReady(NotReady),
}

/// Why no pod is ready.
pub(crate) enum NotReady {
    /// A pod fails, and waiting does not help.
    Failed(String),
    /// A pod waits for something that may need a user's help.
    Blocked(String),
    /// The pods are starting.
    Starting(String),
}

impl NotReady {
    /// Why, if these pods wait for others that are not ready either.
    pub(crate) fn because_of(self, others: Self) -> Self {
        match self {
            Self::Starting(_) => others,
            why => why,
        }
    }
}

/// The state of the pods of a Deployment. `whose` names their owner in messages.
pub(crate) fn pods_state(deployment: Option<&DeploymentFacts>, pods: &[LivePod], whose: &str) -> PodsState {
    if deployment.is_some_and(|deployment| deployment.desired == 0) {
        return PodsState::ScaledToZero;
    }
    if running(pods) > 0 {
        return PodsState::Running;
    }
    let rejected = deployment.and_then(|deployment| deployment.rejected.as_ref());
    PodsState::NotReady(match (not_ready(pods, whose), rejected) {
        (NotReady::Blocked(_) | NotReady::Starting(_), Some(message)) => {
            NotReady::Failed(format!("the {whose}'s pods cannot be created: {message}"))
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
    let blocked = pods.iter().find_map(|pod| match &pod.state {
        PodState::Blocked(why) => Some(format!("the {whose}'s pod {} waits: {why}", pod.name)),
        _ => None,
    });
    match (failed, blocked) {
        (Some(message), _) => NotReady::Failed(message),
        (None, Some(message)) => NotReady::Blocked(message),
        (None, None) => NotReady::Starting(format!("the {whose}'s pods are starting")),
    }
}

/// The message about a workload that serves requests, with the reason why another of its pods does not run: a new one that
/// fails keeps a rollout from being completed.
pub(crate) fn running_message(message: &str, pods: &[LivePod], whose: &str) -> String {
    match not_ready(pods, whose) {
        NotReady::Failed(why) | NotReady::Blocked(why) => format!("{message}; {why}"),
        NotReady::Starting(_) => message.into(),
    }
}

/// How many of the pods are ready.
pub(crate) fn running(pods: &[LivePod]) -> i32 {
    let running = pods.iter().filter(|pod| pod.state == PodState::Running).count();
    running.try_into().unwrap_or(i32::MAX)
}

impl ProxyWorkload {
    /// The state of the proxy's pods.
    pub(crate) fn pods_state(&self) -> PodsState {
        pods_state(self.deployment.as_ref(), &self.pods, "proxy")
    }

    /// Whether proxies of an older spec still serve.
    pub(crate) fn is_rolling(&self) -> bool {
        self.deployment.as_ref().is_some_and(|deployment| deployment.is_rolling)
    }

    /// How many of the proxy's pods are ready.
    pub(crate) fn running(&self) -> i32 {
        running(&self.pods)
    }

    /// The number of the proxy's pods, if there are any.
    fn replicas(&self) -> Option<i32> {
        self.deployment.as_ref().map(|deployment| deployment.replicas).filter(|replicas| *replicas > 0)
    }
}

/// The status of a kind with a proxy in front of one server.
pub(crate) trait ProxyStatus: Default {
    /// The fields that these kinds share.
    fn of(proxy: &ProxyWorkload) -> Self;
}

macro_rules! proxy_status {
    ($($status:ident),+) => { $(
        impl ProxyStatus for $status {
            fn of(proxy: &ProxyWorkload) -> Self {
                Self {
                    replicas: proxy.replicas(),
                    selector: Some(proxy.identity.selector()),
                    tool_config_hash: proxy.tools.hash(),
                    external_auth_config_hash: proxy.external_auth.upstream.hash(),
                    auth_server_config_hash: proxy.external_auth.server.hash(),
                    authz_config_hash: proxy.policies.reference.hash(),
                    oidc_config_hash: proxy.oidc.hash(),
                    telemetry_config_hash: proxy.telemetry.hash(),
                    ..Self::default()
                }
            }
        }
    )+ };
}

proxy_status!(MCPServerStatus, MCPRemoteProxyStatus);
