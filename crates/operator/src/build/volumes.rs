//! Volumes of a pod, each with where its container sees it.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, HostPathVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};
use skep_api::refs::SecretKeyRef;

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

    /// A folder of the node.
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
