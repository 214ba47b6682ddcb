//! Values that pods get from ConfigMaps and Secrets, taken from those of the same file.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_config::{FieldError, paths};

use super::{expansion::expanded, variables::Variables};

/// Where a value is used, for error messages.
#[derive(Clone, Copy)]
pub(super) enum Usage {
    /// `spec.secrets` of an MCPServer.
    Secrets,
    /// `spec.podTemplateSpec` of an MCPServer.
    PodTemplate,
    /// The proxy itself, for a referenced object.
    Proxy,
}

impl Usage {
    /// The error about a variable.
    fn error(self, variable: &str, message: String) -> FieldError {
        match self {
            Self::Secrets => FieldError::new("spec.secrets", message),
            Self::PodTemplate => {
                FieldError::new("spec.podTemplateSpec", format!("variable {variable}: {message}"))
            }
            Self::Proxy => FieldError::new("", format!("the proxy's variable {variable}: {message}")),
        }
    }
}

/// The ConfigMaps and Secrets of one namespace.
pub(super) struct ConfigSources<'a> {
    objects: &'a [DynamicObject],
    namespace: &'a str,
}

/// Folders of the proxy's pod whose content is also in its RunConfig, or has no effect.
const NEEDLESS: [&str; 3] = [paths::RUN_CONFIG_FOLDER, paths::AUTHZ_FOLDER, paths::PROFILES_FOLDER];

impl<'a> ConfigSources<'a> {
    pub(super) fn new(objects: &'a [DynamicObject], namespace: &'a str) -> Self {
        Self { objects, namespace }
    }

    /// Adds the variables of a container with their values to those of its `envFrom`. Those that exist only in a cluster are omitted.
    pub(super) fn add_variables(
        &self,
        all: &mut Variables,
        env: &Value,
        usage: impl Fn(&str) -> Usage,
    ) -> Result<(), FieldError> {
        for variable in env.as_array().into_iter().flatten() {
            let Some(name) = variable["name"].as_str() else { continue };
            let from = &variable["valueFrom"];
            let value = if from.is_null() {
                Some(expanded(variable["value"].as_str().unwrap_or_default(), all))
            } else if let Some((kind, source)) =
                [("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")]
                    .into_iter()
                    .find_map(|(kind, source)| Some((kind, from.get(source)?)))
            {
                self.value(kind, source).map_err(|message| usage(name).error(name, message))?
            } else {
                None
            };
            all.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(())
    }

    /// The variables of the proxy's own container in its pod.
    pub(super) fn proxy_variables(&self, pod: &Value) -> Result<Variables, FieldError> {
        let mut all = Variables::new();
        self.add_variables(&mut all, &pod["containers"][0]["env"], |_| Usage::Proxy)?;
        Ok(all)
    }

    /// The variables of `envFrom`: all keys of ConfigMaps and Secrets. A later one overrides an earlier one.
    pub(super) fn all_variables(&self, env_from: &Value) -> Result<Variables, FieldError> {
        let mut all = Variables::new();
        for source in env_from.as_array().into_iter().flatten() {
            let prefix = source["prefix"].as_str().unwrap_or_default();
            let known = [("Secret", "secretRef"), ("ConfigMap", "configMapRef")];
            let Some((kind, from)) = known.iter().find_map(|(kind, field)| Some((kind, source.get(field)?)))
            else {
                continue;
            };
            let name = from["name"].as_str().unwrap_or_default();
            let keys: Vec<String> = match self.keys(kind, name) {
                Ok(keys) => keys.collect(),
                Err(_) if from["optional"] == true => continue,
                Err(missing) => {
                    return Err(FieldError::new("spec.podTemplateSpec", format!("envFrom: {missing}")));
                }
            };
            for key in keys {
                let variable = format!("{prefix}{key}");
                let selector = json!({"name": name, "key": key});
                let value = self.value(kind, &selector);
                let value = value.map_err(|message| Usage::PodTemplate.error(&variable, message))?;
                all.extend(value.map(|value| (variable, value)));
            }
        }
        Ok(all)
    }

    /// The value that a selector names, or none if it is optional and missing.
    fn value(&self, kind: &str, source: &Value) -> Result<Option<String>, String> {
        let text = |key: &str| source[key].as_str().unwrap_or_default();
        match self.key(kind, text("name"), text("key")) {
            Ok(bytes) => {
                let invalid = |_| format!("{kind} {}, key {}, is not text", text("name"), text("key"));
                String::from_utf8(bytes).map(Some).map_err(invalid)
            }
            Err(_) if source["optional"] == true => Ok(None),
            Err(missing) => Err(missing),
        }
    }

    /// The files of the proxy's container, by their paths.
    pub(super) fn files(&self, pod: &Value) -> Result<BTreeMap<String, Vec<u8>>, FieldError> {
        let mut files = BTreeMap::new();
        for mount in pod["containers"][0]["volumeMounts"].as_array().into_iter().flatten() {
            let path = mount["mountPath"].as_str().unwrap_or_default();
            let volumes = pod["volumes"].as_array().into_iter().flatten();
            let Some(volume) = volumes.into_iter().find(|volume| volume["name"] == mount["name"]) else {
                continue;
            };
            let (kind, source, name) = match (volume.get("configMap"), volume.get("secret")) {
                (Some(source), _) => ("ConfigMap", source, &source["name"]),
                (_, Some(source)) => ("Secret", source, &source["secretName"]),
                // Other volumes are not read by the proxy.
                _ => continue,
            };
            if NEEDLESS.iter().any(|needless| path.starts_with(needless)) {
                continue;
            }
            let name = name.as_str().unwrap_or_default();
            let missing = |message: String| FieldError::new("", format!("the file {path}: {message}"));
            let keys: Vec<(String, String)> = match source["items"].as_array() {
                Some(items) => {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    items.iter().map(|item| (text(&item["key"]), text(&item["path"]))).collect()
                }
                None => self.keys(kind, name).map_err(missing)?.map(|key| (key.clone(), key)).collect(),
            };
            for (key, file) in keys {
                let bytes = self.key(kind, name, &key).map_err(missing)?;
                // The path of a single mounted file includes its name.
                let alone = mount["subPath"].as_str() == Some(&file);
                files.insert(if alone { path.to_owned() } else { format!("{path}/{file}") }, bytes);
            }
        }
        Ok(files)
    }

    fn object(&self, kind: &str, name: &str) -> Result<&'a DynamicObject, String> {
        let mut objects = self.objects.iter().filter(|object| {
            object.types.as_ref().is_some_and(|types| types.kind == kind && types.api_version == "v1")
                && object.metadata.namespace.as_deref() == Some(self.namespace)
                && object.metadata.name.as_deref() == Some(name)
        });
        objects.next().ok_or_else(|| format!("{kind} {name} not found in the file: add it"))
    }

    fn keys(&self, kind: &str, name: &str) -> Result<impl Iterator<Item = String>, String> {
        let object = self.object(kind, name)?;
        let parts = ["data", "binaryData"].into_iter();
        Ok(parts.filter_map(|part| object.data.get(part)?.as_object()).flat_map(|part| part.keys().cloned()))
    }

    /// The bytes of a key. Errors never contain the value.
    fn key(&self, kind: &str, name: &str, key: &str) -> Result<Vec<u8>, String> {
        let data = &self.object(kind, name)?.data;
        let text = |part: &str| data.get(part)?.get(key)?.as_str();
        let (plain, encoded) = match kind {
            "Secret" => (None, text("data")),
            _ => (text("data"), text("binaryData")),
        };
        match (plain, encoded) {
            (Some(plain), _) => Ok(plain.as_bytes().to_vec()),
            (None, Some(encoded)) => STANDARD.decode(encoded.trim()).map_err(|_| {
                format!("{kind} {name}, key {key}: it is not base64: use stringData for plain text")
            }),
            (None, None) => Err(format!("{kind} {name} has no key {key}: add it")),
        }
    }
}
