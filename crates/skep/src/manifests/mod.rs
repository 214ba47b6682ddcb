//! Files of manifests.

use std::{fmt::Display, fs, path::Path};

use anyhow::{Context, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::core::DynamicObject;
use serde_json::Value;
use skep_api::GROUP;

/// The objects of a file.
pub(crate) fn read(file: &Path, namespace: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    objects(&text, &file.display(), namespace)
}

/// The objects of a text, which is called `name` in errors. Those that name no namespace are in the one that is given.
pub(crate) fn objects(
    text: &str,
    name: &impl Display,
    namespace: &str,
) -> anyhow::Result<Vec<DynamicObject>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| not_yaml(name, &error))?;
    let objects = documents.into_iter().filter(|document| !document.is_null());
    let objects = objects.enumerate().map(|(number, document)| {
        object(document, namespace).with_context(|| format!("{name}, document {}", number + 1))
    });
    objects.collect()
}

/// The first line says where and what; the rest of the text draws a picture of it.
fn not_yaml(name: &impl Display, error: &impl Display) -> anyhow::Error {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    anyhow::anyhow!("{name}: {}", first.trim_start_matches("error: "))
}

/// A document as an object that the API server would have given a generation.
fn object(mut document: Value, namespace: &str) -> anyhow::Result<DynamicObject> {
    let (api_version, kind) = (document["apiVersion"].as_str(), document["kind"].as_str());
    let (Some(api_version), Some(kind)) = (api_version, kind) else { bail!("apiVersion or kind is missing") };
    let known = skep_api::crd::crds()?.iter().any(|crd| crd.spec.names.kind == kind);
    ensure!(!api_version.starts_with(GROUP) || known, "there is no kind {kind} in {GROUP}");
    ensure!(document["metadata"]["name"].is_string(), "{kind}: metadata.name is missing");
    let metadata = &mut document["metadata"];
    if metadata["namespace"].is_null() {
        metadata["namespace"] = namespace.into();
    }
    if metadata["generation"].is_null() {
        metadata["generation"] = 1.into();
    }
    if kind_is(&document, "Secret") {
        encode(&mut document);
    }
    Ok(serde_json::from_value(document)?)
}

fn kind_is(document: &Value, kind: &str) -> bool {
    document["apiVersion"] == "v1" && document["kind"] == kind
}

/// Moves plain text to where a Secret keeps its values, as the API server does.
fn encode(secret: &mut Value) {
    let Value::Object(plain) = secret["stringData"].take() else { return };
    for (key, value) in plain {
        let value = value.as_str().unwrap_or_default();
        secret["data"][key] = STANDARD.encode(value).into();
    }
}
