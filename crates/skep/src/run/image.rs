//! The container of a server, from what its manifest says of its pod.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::found::Found;

/// The user and the group that servers run as, unless they say otherwise.
const ID: i64 = 1000;

/// What a container is started with, beside what stands in the RunConfig.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// What is started instead of what the image says.
    pub(super) command: Vec<String>,
    pub(super) user: String,
    /// Whether nothing can be written beside its volumes.
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
    /// `patch` is what the manifest says of the pod, and `container` what it says there of the server's own container.
    pub(super) fn new(
        patch: &Value,
        container: &Value,
        port: u16,
        found: &Found<'_>,
    ) -> Result<Self, String> {
        let words = |value: &Value| {
            let words = value.as_array().into_iter().flatten();
            words.filter_map(|word| word.as_str().map(ToOwned::to_owned)).collect()
        };
        let volumes = &patch["spec"]["volumes"];
        let files = found.files(&json!({"containers": [container], "volumes": volumes}))?;
        let (mut binds, mut scratch) = (Vec::new(), Vec::new());
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let mut all = volumes.as_array().into_iter().flatten();
            let Some(volume) = all.find(|volume| volume["name"] == mount["name"]) else { continue };
            let there = text(&mount["mountPath"]);
            if let Some(here) = volume["hostPath"]["path"].as_str() {
                let mode = if mount["readOnly"] == true { ":ro" } else { "" };
                binds.push(format!("{here}:{there}{mode}"));
            } else if volume.get("emptyDir").is_some() {
                scratch.push(there);
            } else if volume.get("configMap").or(volume.get("secret")).is_none() {
                let name = text(&mount["name"]);
                return Err(format!(
                    "spec.podTemplateSpec: the volume {name} is for a cluster only: here it can be a hostPath, an \
                     emptyDir, a configMap or a secret"
                ));
            }
        }
        let said = |field: &str| {
            let pod = &patch["spec"]["securityContext"][field];
            let own = &container["securityContext"][field];
            if own.is_null() { pod.clone() } else { own.clone() }
        };
        let id = |field: &str| said(field).as_i64().unwrap_or(ID);
        Ok(Self {
            command: words(&container["command"]),
            user: format!("{}:{}", id("runAsUser"), id("runAsGroup")),
            read_only: said("readOnlyRootFilesystem").as_bool().unwrap_or(true),
            port,
            binds,
            scratch,
            files,
        })
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
                {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}},
            ],
        }});
        let of = |mounts: Value| {
            let container =
                json!({"volumeMounts": mounts, "securityContext": {"readOnlyRootFilesystem": false}});
            Image::new(&patch, &container, 80, &Found::new(&[], "default"))
        };
        let mounts = json!([
            {"name": "data", "mountPath": "/data", "readOnly": true}, {"name": "tmp", "mountPath": "/tmp"},
        ]);
        let image = of(mounts).unwrap();
        assert_eq!((image.user.as_str(), image.read_only, image.port), ("7:1000", false, 80));
        assert_eq!((image.binds, image.scratch), (vec!["/srv:/data:ro".to_owned()], vec!["/tmp".to_owned()]));
        let error = of(json!([{"name": "disk", "mountPath": "/disk"}])).err().unwrap();
        assert!(error.starts_with("spec.podTemplateSpec: the volume disk is for a cluster only"), "{error}");
    }
}
