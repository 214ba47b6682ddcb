//! What kind of cluster it is.

use std::collections::BTreeMap;

use backon::{ExponentialBuilder, Retryable};
use kube::Client;
use skep_config::env;
use tokio::time::timeout;

use super::RuntimeError;
use crate::limits;

/// The API that only OpenShift has.
const ROUTES: (&str, &str) = ("route.openshift.io/v1", "routes");

/// What kind of cluster it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Any that is no OpenShift.
    Kubernetes,
    /// It chooses users and groups of pods itself.
    OpenShift,
}

impl Platform {
    /// By the environment, or else by the APIs of the cluster.
    pub async fn of(client: &Client, env: &BTreeMap<String, String>) -> Result<Self, RuntimeError> {
        if let Some(told) = told(env) {
            return Ok(told);
        }
        let pace = ExponentialBuilder::default()
            .with_min_delay(limits::DISCOVERY_PAUSE_LEAST)
            .with_max_delay(limits::DISCOVERY_PAUSE_MOST)
            .with_max_times(limits::DISCOVERY_TRIES)
            .with_jitter();
        let discovered = || async {
            let discovered = timeout(limits::DISCOVERY_TIME, discovered(client));
            discovered.await.unwrap_or(Err(RuntimeError::Silence))
        };
        discovered.retry(pace).when(RuntimeError::may_pass).await
    }
}

/// A variable that is set decides, with any value.
fn told(env: &BTreeMap<String, String>) -> Option<Platform> {
    let value = env.get(env::OPENSHIFT)?;
    Some(if value.eq_ignore_ascii_case("true") { Platform::OpenShift } else { Platform::Kubernetes })
}

async fn discovered(client: &Client) -> Result<Platform, RuntimeError> {
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
    fn a_variable_that_is_there_decides() {
        for (value, expected) in [
            (None, None),
            (Some("true"), Some(Platform::OpenShift)),
            (Some("TRUE"), Some(Platform::OpenShift)),
            (Some("false"), Some(Platform::Kubernetes)),
            (Some("1"), Some(Platform::Kubernetes)),
            (Some(""), Some(Platform::Kubernetes)),
        ] {
            let env = value.map(|value| (env::OPENSHIFT.to_owned(), value.to_owned())).into_iter().collect();
            assert_eq!(told(&env), expected, "{value:?}");
        }
    }
}
