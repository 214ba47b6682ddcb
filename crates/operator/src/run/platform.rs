//! Whether the cluster is OpenShift, detected from the APIs that it serves.

use kube::{Client, Error};

use crate::settings::{Platform, Settings};

/// The API that only OpenShift serves: its group, version and resource.
const ROUTES: (&str, &str, &str) = ("route.openshift.io", "route.openshift.io/v1", "routes");

/// The settings with the platform, which is detected unless it is set.
pub(crate) async fn with_platform(settings: &Settings, client: &Client) -> Result<Settings, Error> {
    let platform = match settings.platform {
        Some(platform) => platform,
        None => detect(client).await?,
    };
    Ok(Settings { platform: Some(platform), ..settings.clone() })
}

/// The groups are listed first: a request for a group that is not served is an error.
async fn detect(client: &Client) -> Result<Platform, Error> {
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
