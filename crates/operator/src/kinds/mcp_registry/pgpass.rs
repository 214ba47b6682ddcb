//! The file with the passwords of the database.
//!
//! PostgreSQL's clients require it to be readable only by its owner. A Secret's file cannot be, so an init container
//! copies it.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, EnvVar, KeyToPath, PodSpec, ResourceRequirements,
    SecretVolumeSource, SecurityContext, Volume, VolumeMount,
};
use skep_api::refs::SecretKeySelector;

use super::pod::amounts;

/// The volumes that are needed for it.
pub(super) const VOLUMES: [&str; 2] = ["pgpass-secret", "pgpass"];
/// The container that copies the file.
pub(super) const INIT: &str = "setup-pgpass";
/// Where the server finds it.
pub(super) const FILE: &str = "/home/appuser/.pgpass";

const NAME: &str = ".pgpass";
const IMAGE: &str = "cgr.dev/chainguard/busybox:latest";
const COPY: &str = "cp /secret/.pgpass /pgpass/.pgpass && chmod 0600 /pgpass/.pgpass";

/// Adds the file to a pod whose first container is the server's.
pub(super) fn add(secret: &SecretKeySelector, pod: &mut PodSpec) {
    let [source, copy] = VOLUMES;
    let item = KeyToPath { key: secret.key.clone(), path: NAME.into(), mode: None };
    let secret = SecretVolumeSource {
        secret_name: secret.name.clone(),
        items: Some(vec![item]),
        ..SecretVolumeSource::default()
    };
    pod.volumes.get_or_insert_default().extend([
        Volume { name: source.into(), secret: Some(secret), ..Volume::default() },
        Volume { name: copy.into(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() },
    ]);
    pod.init_containers.get_or_insert_default().push(copying());
    if let Some(server) = pod.containers.first_mut() {
        let sub_path = Some(NAME.into());
        let mount = VolumeMount { sub_path, read_only: Some(true), ..mount(copy, FILE) };
        server.volume_mounts.get_or_insert_default().push(mount);
        let variable = EnvVar { name: "PGPASSFILE".into(), value: Some(FILE.into()), value_from: None };
        server.env.get_or_insert_default().push(variable);
    }
}

fn copying() -> Container {
    let [source, copy] = VOLUMES;
    Container {
        name: INIT.into(),
        image: Some(IMAGE.into()),
        command: Some(["sh", "-c", COPY].map(Into::into).into()),
        volume_mounts: Some(vec![
            VolumeMount { read_only: Some(true), ..mount(source, "/secret") },
            mount(copy, "/pgpass"),
        ]),
        security_context: Some(SecurityContext {
            run_as_non_root: Some(true),
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
            ..SecurityContext::default()
        }),
        resources: Some(ResourceRequirements {
            requests: Some(amounts("10m", "16Mi")),
            limits: Some(amounts("50m", "32Mi")),
            claims: None,
        }),
        ..Container::default()
    }
}

fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.into(), mount_path: path.into(), ..VolumeMount::default() }
}
