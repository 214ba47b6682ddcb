//! The container of a server, from the pod template of its manifest.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skep_config::FieldError;

use super::config_sources::ConfigSources;

/// The default user and group of servers.
const ID: i64 = 1000;

/// The settings of a container that are not in the RunConfig.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// The entrypoint, if it overrides the image's.
    pub(super) command: Vec<String>,
    pub(super) user: String,
    /// Whether the root file system is read-only.
    pub(super) read_only: bool,
    /// The port that the server listens on.
    pub(super) port: u16,
    /// Folders of this machine, as `here:there[:ro]`.
    pub(super) binds: Vec<String>,
    /// Empty folders.
    pub(super) scratch: Vec<String>,
    /// Files from ConfigMaps and Secrets, by their paths.
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// `patch` is the pod template of the manifest, and `container` the server's own container in it.
    pub(super) fn new(
        patch: &Value,
        container: &Value,
        port: u16,
        sources: &ConfigSources<'_>,
    ) -> Result<Self, FieldError> {
        let volumes = &patch["spec"]["volumes"];
        let files = sources.files(&json!({"containers": [container], "volumes": volumes}))?;
        let (mut binds, mut scratch) = (Vec::new(), Vec::new());
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let mut all = volumes.as_array().into_iter().flatten();
            let Some(volume) = all.find(|volume| volume["name"] == mount["name"]) else { continue };
            let there = text(&mount["mountPath"]);
            if let Some(here) = volume["hostPath"]["path"].as_str() {
                check_host_path(here).map_err(|message| FieldError::new("spec.podTemplateSpec", message))?;
                let mode = if mount["readOnly"] == true { ":ro" } else { "" };
                binds.push(format!("{here}:{there}{mode}"));
            } else if volume.get("emptyDir").is_some() {
                scratch.push(there);
            } else if volume.get("configMap").or(volume.get("secret")).is_none() {
                let name = text(&mount["name"]);
                let message = format!(
                    "the volume {name} works only in a cluster: use a hostPath, an emptyDir, a \
                     configMap or a secret"
                );
                return Err(FieldError::new("spec.podTemplateSpec", message));
            }
        }
        let setting = |field: &str| {
            let pod = &patch["spec"]["securityContext"][field];
            let own = &container["securityContext"][field];
            if own.is_null() { pod.clone() } else { own.clone() }
        };
        let id = |field: &str| setting(field).as_i64().unwrap_or(ID);
        Ok(Self {
            command: words(&container["command"]),
            user: format!("{}:{}", id("runAsUser"), id("runAsGroup")),
            read_only: setting("readOnlyRootFilesystem").as_bool().unwrap_or(true),
            port,
            binds,
            scratch,
            files,
        })
    }
}

/// The words of a command or of arguments.
pub(super) fn words(value: &Value) -> Vec<String> {
    let words = value.as_array().into_iter().flatten();
    words.filter_map(|word| word.as_str().map(ToOwned::to_owned)).collect()
}

/// A container engine would take a relative path for the name of a volume.
pub(super) fn check_host_path(path: &str) -> Result<(), String> {
    if path.starts_with('/') {
        Ok(())
    } else {
        Err(format!("hostPath {path} is relative: write the absolute path"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_the_volumes_and_the_user_that_its_pod_would_have() {
        let patch = json!({"spec": {
            "securityContext": {"runAsUser": 7},
            "volumes": [
                {"name": "data", "hostPath": {"path": "/srv"}}, {"name": "tmp", "emptyDir": {}},
                {"name": "here", "hostPath": {"path": "./data"}},
                {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}},
            ],
        }});
        let of = |mounts: Value| {
            let container =
                json!({"volumeMounts": mounts, "securityContext": {"readOnlyRootFilesystem": false}});
            Image::new(&patch, &container, 80, &ConfigSources::new(&[], "default"))
        };
        let mounts = json!([
            {"name": "data", "mountPath": "/data", "readOnly": true}, {"name": "tmp", "mountPath": "/tmp"},
        ]);
        let image = of(mounts).unwrap();
        assert_eq!((image.user.as_str(), image.read_only, image.port), ("7:1000", false, 80));
        assert_eq!((image.binds, image.scratch), (vec!["/srv:/data:ro".to_owned()], vec!["/tmp".to_owned()]));
        let error = of(json!([{"name": "here", "mountPath": "/here"}])).err().unwrap();
        assert_eq!(
            error.to_string(),
            "spec.podTemplateSpec: hostPath ./data is relative: write the absolute path"
        );
        let error = of(json!([{"name": "disk", "mountPath": "/disk"}])).err().unwrap();
        assert!(
            error.to_string().starts_with("spec.podTemplateSpec: the volume disk works only in a cluster"),
            "{error}"
        );
    }
}
