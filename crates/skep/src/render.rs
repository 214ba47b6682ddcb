//! `skep render`: what the operator would create.

use std::{
    collections::BTreeMap,
    env,
    fmt::Display,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use kube::core::DynamicObject;
use serde_json::Value;
use skep_api::GROUP;
use skep_operator::{
    render::{Rendered, render},
    settings::Settings,
};

use crate::output::print;

/// Print the objects that the operator would create for a file of manifests, with no cluster.
///
/// References to other objects are looked up in the same file. An object that cannot have its children as it is stops
/// the command, and the error says what to change.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  skep render -f server.yaml")]
pub(crate) struct Args {
    /// The file, with one or more YAML documents.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,

    /// The namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let file = args.file.display();
    let text = fs::read_to_string(&args.file).with_context(|| format!("cannot read {file}"))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| not_yaml(&args.file, &error))?;
    let objects = documents.into_iter().filter(|document| !document.is_null());
    let objects = objects.enumerate().map(|(number, document)| {
        object(document, &args.namespace).with_context(|| format!("{file}, document {}", number + 1))
    });
    let objects: Vec<DynamicObject> = objects.collect::<anyhow::Result<_>>()?;
    let settings = Settings::from_env(&env::vars().collect::<BTreeMap<_, _>>());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let rendered = runtime.block_on(render(objects, settings)).with_context(|| file.to_string())?;
    ensure!(!rendered.is_empty(), "{file}: there is nothing to render: no MCPServer is in it");
    print(&yaml(&rendered)?)
}

/// The first line says where and what; the rest of the text draws a picture of it.
fn not_yaml(file: &Path, error: &impl Display) -> anyhow::Error {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    anyhow::anyhow!("{}: {}", file.display(), first.trim_start_matches("error: "))
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
    Ok(serde_json::from_value(document)?)
}

fn yaml(rendered: &[Rendered]) -> anyhow::Result<String> {
    let mut text = String::new();
    for Rendered { owner, children } in rendered {
        let children =
            children.as_ref().map_err(|blocked| anyhow::anyhow!("{owner}: {}", blocked.message))?;
        for child in children {
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(&without_uid(child.body().clone()))?);
        }
    }
    Ok(text)
}

/// Only a cluster gives uids, so there is no owner to name by one. Keys are sorted, so that two outputs can be compared.
fn without_uid(mut body: Value) -> Value {
    for owner in body["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        if let Value::Object(owner) = owner {
            owner.remove("uid");
        }
    }
    body.sort_all_objects();
    body
}
