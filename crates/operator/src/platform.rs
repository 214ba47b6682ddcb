//! What kind of cluster it is, as its API server tells.

use kube::{Client, Error};

use crate::settings::{Platform, Settings};

/// The API whose presence tells an OpenShift: its group, its version, and what is in it.
const ROUTES: (&str, &str, &str) = ("route.openshift.io", "route.openshift.io/v1", "routes");

/// The settings with what the cluster is. The API server is asked only if the installation does not say.
pub(crate) async fn settled(settings: &Settings, client: &Client) -> Result<Settings, Error> {
    let platform = match settings.platform {
        Some(told) => told,
        None => discovered(client).await?,
    };
    Ok(Settings { platform: Some(platform), ..settings.clone() })
}

/// The groups are asked for first: a cluster that has them not would refuse what asks for one of them.
async fn discovered(client: &Client) -> Result<Platform, Error> {
    let (name, version, plural) = ROUTES;
    let groups = client.list_api_groups().await?.groups;
    let mut versions = groups.iter().filter(|group| group.name == name).flat_map(|group| &group.versions);
    if !versions.any(|served| served.group_version == version) {
        return Ok(Platform::Kubernetes);
    }
    let served = client.list_api_group_resources(version).await?.resources;
    let is_one = served.iter().any(|resource| resource.name == plural);
    Ok(if is_one { Platform::OpenShift } else { Platform::Kubernetes })
}
