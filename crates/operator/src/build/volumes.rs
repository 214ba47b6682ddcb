//! Volumes of a pod, each with its mount.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, HostPathVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};
use serde_json::{Value, json};
use skep_api::refs::SecretKeyRef;
use skep_config::fingerprint;

/// Volumes and mounts, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Volumes {
    pub(crate) volumes: Vec<Volume>,
    pub(crate) mounts: Vec<VolumeMount>,
}

impl Volumes {
    /// A ConfigMap as a folder, whole or with one key as one file.
    pub(crate) fn config_map(
        &mut self,
        volume: &str,
        config_map: &str,
        file: Option<(&str, &str)>,
        folder: &str,
    ) {
        let items =
            file.map(|(key, path)| vec![KeyToPath { key: key.into(), path: path.into(), mode: None }]);
        let source =
            ConfigMapVolumeSource { name: config_map.into(), items, ..ConfigMapVolumeSource::default() };
        self.add(Volume { name: volume.into(), config_map: Some(source), ..Volume::default() }, folder, None);
    }

    /// One key of a Secret as one file.
    pub(crate) fn secret_file(
        &mut self,
        volume: &str,
        secret: &SecretKeyRef,
        folder: &str,
        file: &str,
        mode: Option<i32>,
    ) {
        let item = KeyToPath { key: secret.key.clone(), path: file.into(), mode: None };
        let source = SecretVolumeSource {
            secret_name: Some(secret.name.clone()),
            items: Some(vec![item]),
            default_mode: mode,
            ..SecretVolumeSource::default()
        };
        let volume = Volume { name: volume.into(), secret: Some(source), ..Volume::default() };
        self.add(volume, &format!("{folder}/{file}"), Some(file));
    }

    /// A directory of the node.
    pub(crate) fn host_path(&mut self, volume: &str, host: &str, folder: &str, read_only: bool) {
        let source = HostPathVolumeSource { path: host.into(), type_: None };
        self.volumes.push(Volume { name: volume.into(), host_path: Some(source), ..Volume::default() });
        let read_only = read_only.then_some(true);
        self.mounts.push(VolumeMount {
            name: volume.into(),
            mount_path: folder.into(),
            read_only,
            ..VolumeMount::default()
        });
    }

    /// A fingerprint of all desired volumes, regardless of their order. It covers each source as a whole, so that
    /// none can be forgotten; defaults that the API server fills in are not included.
    pub(crate) fn fingerprint(&self) -> serde_json::Result<String> {
        let mut all = json!({"volumes": self.volumes, "mounts": self.mounts});
        sort(&mut all);
        fingerprint(&all)
    }

    fn add(&mut self, volume: Volume, path: &str, sub_path: Option<&str>) {
        self.mounts.push(VolumeMount {
            name: volume.name.clone(),
            mount_path: path.into(),
            sub_path: sub_path.map(Into::into),
            read_only: Some(true),
            ..VolumeMount::default()
        });
        // Two files of one volume share it.
        if !self.volumes.iter().any(|other| other.name == volume.name) {
            self.volumes.push(volume);
        }
    }
}

/// Sorts every list within a value.
fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sort);
            items.sort_by_cached_key(Value::to_string);
        }
        Value::Object(map) => map.values_mut().for_each(sort),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::{EmptyDirVolumeSource, ProjectedVolumeSource, SecretProjection, VolumeProjection},
        apimachinery::pkg::api::resource::Quantity,
    };

    use super::*;

    fn volumes(names: &[&str]) -> Volumes {
        let mut all = Volumes::default();
        for name in names {
            all.config_map(name, name, Some(("ca.crt", "ca.crt")), &format!("/{name}"));
        }
        all
    }

    fn print(volumes: &Volumes) -> String {
        volumes.fingerprint().unwrap()
    }

    #[test]
    fn the_fingerprint_does_not_depend_on_the_order() {
        assert_eq!(print(&volumes(&["a", "b"])), print(&volumes(&["b", "a"])));
        assert_ne!(print(&volumes(&["a", "b"])), print(&volumes(&["a"])));
    }

    #[test]
    fn the_fingerprint_covers_sources_that_are_not_used_yet() {
        let of = |source: Volume| {
            let mut all = volumes(&["a"]);
            all.volumes.push(Volume { name: "x".into(), ..source });
            print(&all)
        };
        let memory = EmptyDirVolumeSource { medium: Some("Memory".into()), size_limit: None };
        let sized = EmptyDirVolumeSource { size_limit: Some(Quantity("1Gi".into())), ..memory.clone() };
        let projected = |secret: &str| {
            let source = SecretProjection { name: secret.into(), ..SecretProjection::default() };
            let source = VolumeProjection { secret: Some(source), ..VolumeProjection::default() };
            ProjectedVolumeSource { sources: Some(vec![source]), default_mode: None }
        };
        let mut prints = vec![
            of(Volume { empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }),
            of(Volume { empty_dir: Some(memory), ..Volume::default() }),
            of(Volume { empty_dir: Some(sized), ..Volume::default() }),
            of(Volume { projected: Some(projected("one")), ..Volume::default() }),
            of(Volume { projected: Some(projected("two")), ..Volume::default() }),
        ];
        prints.sort();
        prints.dedup();
        assert_eq!(prints.len(), 5);
    }
}
