//! Helpers of the tests.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;
use skep_config::FieldError;
use skep_converge::Kind;

use super::reference::{ConfigField, ConfigRef};
use crate::{
    build::{EnvList, Identity, Volumes},
    resources::ResolvedRef,
};

/// A part of an object, as in a manifest.
pub(super) fn sample<T: DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).unwrap()
}

/// A reference to a configuration that exists.
pub(super) fn resolved<F: ConfigField>(field: F, config: F::Kind) -> ConfigRef<F> {
    ConfigRef { path: "configRef".into(), target: Some((field, ResolvedRef::present(config))) }
}

/// The fields of errors.
pub(super) fn fields(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| error.field.to_string()).collect()
}

/// The MCPServer that the parts are built for.
pub(super) fn identity(namespace: &str, name: &str) -> Identity {
    let kind = Kind { group: skep_api::GROUP, version: "v1beta1", kind: "MCPServer", plural: "mcpservers" };
    let metadata =
        ObjectMeta { name: Some(name.into()), namespace: Some(namespace.into()), ..ObjectMeta::default() };
    Identity::new(kind, "mcpserver", &metadata)
}

/// The variables that a part adds, as `NAME=value` or `NAME<secret/key`.
pub(super) fn variables(add: impl FnOnce(&mut EnvList)) -> Vec<String> {
    let mut list = EnvList::default();
    add(&mut list);
    let line = |variable: k8s_openapi::api::core::v1::EnvVar| match variable.value_from {
        None => format!("{}={}", variable.name, variable.value.unwrap_or_default()),
        Some(source) => {
            let secret = source.secret_key_ref.unwrap();
            format!("{}<{}/{}", variable.name, secret.name, secret.key)
        }
    };
    list.into_vec().into_iter().map(line).collect()
}

/// The files that a part mounts, as `volume path`.
pub(super) fn mounts(add: impl FnOnce(&mut Volumes)) -> Vec<String> {
    let mut volumes = Volumes::default();
    add(&mut volumes);
    let names: Vec<_> = volumes.volumes.iter().map(|volume| &volume.name).collect();
    assert!(volumes.mounts.iter().all(|mount| names.contains(&&mount.name)), "a mount without its volume");
    volumes.mounts.iter().map(|mount| format!("{} {}", mount.name, mount.mount_path)).collect()
}
