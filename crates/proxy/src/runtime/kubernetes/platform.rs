//! The platform of the cluster.

use std::collections::BTreeMap;

use backon::{ExponentialBuilder, Retryable};
use kube::Client;
use skep_config::env;
use tokio::time::timeout;

use super::RuntimeError;
use crate::limits;

/// The API that only OpenShift has.
const ROUTES: (&str, &str) = ("route.openshift.io/v1", "routes");

/// The platform of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Any other than OpenShift.
    Kubernetes,
    /// OpenShift, which assigns the users and groups of pods itself.
    OpenShift,
}

impl Platform {
    /// By the environment, or else by the APIs of the cluster.
    pub async fn of(client: &Client, env: &BTreeMap<String, String>) -> Result<Self, RuntimeError> {
        if let Some(platform) = configured(env) {
            return Ok(platform);
        }
        let pace = ExponentialBuilder::default()
            .with_min_delay(limits::DISCOVERY_PAUSE_LEAST)
            .with_max_delay(limits::DISCOVERY_PAUSE_MOST)
            .with_max_times(limits::DISCOVERY_TRIES)
            .with_jitter();
        let discover = || async {
            let platform = timeout(limits::DISCOVERY_TIME, discover(client));
            platform.await.unwrap_or(Err(RuntimeError::Timeout))
        };
        discover.retry(pace).when(RuntimeError::is_transient).await
    }
}

/// A variable that is set decides, with any value.
fn configured(env: &BTreeMap<String, String>) -> Option<Platform> {
    let value = env.get(env::OPENSHIFT)?;
    Some(if value.eq_ignore_ascii_case("true") { Platform::OpenShift } else { Platform::Kubernetes })
}

async fn discover(client: &Client) -> Result<Platform, RuntimeError> {
    let (group, plural) = ROUTES;
    match client.list_api_group_resources(group).await {
        Ok(list) if list.resources.iter().any(|resource| resource.name == plural) => Ok(Platform::OpenShift),
        Ok(_) => Ok(Platform::Kubernetes),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Platform::Kubernetes),
        Err(error) => Err(RuntimeError::Platform(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_decides_if_it_is_set() {
        for (value, expected) in [
            (None, None),
            (Some("true"), Some(Platform::OpenShift)),
            (Some("TRUE"), Some(Platform::OpenShift)),
            (Some("false"), Some(Platform::Kubernetes)),
            (Some("1"), Some(Platform::Kubernetes)),
            (Some(""), Some(Platform::Kubernetes)),
        ] {
            let env = value.map(|value| (env::OPENSHIFT.to_owned(), value.to_owned())).into_iter().collect();
            assert_eq!(configured(&env), expected, "{value:?}");
        }
    }
}
