//! The golden folders: the input of ToolHive's operator, and the objects that it created.

use crate::kinds::{EmbeddingServers, all_kinds};
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use futures::{StreamExt, stream};
use kube::{
    Api,
    api::PostParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use regex::Regex;
use serde_json::{Value, json};
use skep_config::paths;
use skep_converge::Kind;
use skep_operator::settings::Settings;
use skep_testkit::Namespace;
use skep_world::Watched;

/// The kind of an object that the operator reconciles.
pub(super) fn kind_of(object: &Value) -> Option<Kind> {
    all_kinds().into_iter().find(|kind| object["kind"] == *kind.kind)
}

/// The settings with which the golden objects were created.
pub(super) fn settings() -> Settings {
    let proxy_image = "ghcr.io/stacklok/toolhive/proxyrunner:latest".into();
    let vmcp_image = "ghcr.io/stacklok/toolhive/vmcp:latest".into();
    Settings { proxy_image, vmcp_image, ..Settings::default() }
}

/// The folders with an object that the operator reconciles.
pub(super) fn folders() -> Vec<PathBuf> {
    let all = folders_of("golden");
    assert!(all.len() > 15, "only {} folders", all.len());
    all
}

/// The folders of a default installation of ToolHive, which has usage metrics on.
pub(super) fn folders_of_default_installation() -> Vec<PathBuf> {
    let all = folders_of("takeover");
    assert!(all.len() > 10, "only {} folders", all.len());
    all
}

fn folders_of(part: &str) -> Vec<PathBuf> {
    let compat: PathBuf =
        env::var_os("SKEP_COMPAT").expect("SKEP_COMPAT names the folder of golden objects").into();
    let mut all = Vec::new();
    collect(&compat.join(part), &mut all);
    all.sort();
    all.retain(|folder| {
        let inputs = documents(&folder.join("input.yaml"), "NS");
        inputs.iter().any(|object| kind_of(object).is_some())
    });
    all
}

/// Runs a function for every folder, and returns the results. Each has its own namespace and operator, and mostly
/// waits, so several run in parallel.
pub(super) async fn each<T, F: Future<Output = T>>(work: impl Fn(PathBuf) -> F) -> Vec<T> {
    each_of(folders(), work).await
}

/// The same for some folders.
pub(super) async fn each_of<T, F: Future<Output = T>>(
    folders: Vec<PathBuf>,
    work: impl Fn(PathBuf) -> F,
) -> Vec<T> {
    stream::iter(folders).map(work).buffered(3).collect().await
}

fn collect(folder: &Path, folders: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, folders);
        } else if path.ends_with("input.yaml") {
            folders.push(path.parent().unwrap().into());
        }
    }
}

/// Within texts, some have the namespace in which they were recorded.
static RECORDED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(namespace(?:=|\\": \\"))d\d+\b"#).unwrap());
static PLACE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bNS\b").unwrap());
/// Some hashes look like numbers that are too large.
static HASH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)(checksum|-hash): ([0-9a-f]+)$").unwrap());

/// The documents of a file, for a namespace.
pub(super) fn documents(file: &Path, namespace: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let text = RECORDED.replace_all(&text, "${1}NS");
    let text = PLACE.replace_all(&text, namespace);
    let text = HASH.replace_all(&text, "$1: '$2'");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents.into_iter().filter(Value::is_object).collect()
}

/// Access to objects of the kind that this one is of.
pub(super) fn api(test: &Namespace, object: &Value) -> Api<DynamicObject> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if let Some(kind) = kind_of(object) {
        resource.plural = kind.plural.into();
    }
    Api::namespaced_with(test.client(), test.name(), &resource)
}

pub(super) async fn create_as(test: &Namespace, manager: &str, object: &Value) {
    let params = PostParams { field_manager: Some(manager.into()), ..PostParams::default() };
    let created: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let response = api(test, object).create(&params, &created).await;
    response.unwrap_or_else(|error| panic!("{object}: {error}"));
}

/// Creates the objects of a folder's input, and returns those that the operator reconciles, as kind and name.
pub(super) async fn create_inputs(test: &Namespace, folder: &Path) -> Vec<(Kind, String)> {
    let namespace = test.name();
    let mut names = Vec::new();
    for mut object in documents(&folder.join("input.yaml"), namespace) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if kind == "Namespace" {
            continue;
        }
        object["metadata"]["namespace"] = json!(namespace);
        create_as(test, "kubectl", &object).await;
        names.extend(kind_of(&object).map(|kind| (kind, name)));
    }
    names
}

/// The golden children of the objects that the operator reconciles.
pub(super) fn children(folder: &Path, namespace: &str, names: &[(Kind, String)]) -> Vec<Value> {
    let objects = documents(&folder.join("objects.yaml"), namespace).into_iter();
    let of_ours = |object: &Value| {
        let owner = &object["metadata"]["ownerReferences"][0];
        names.iter().any(|(kind, name)| owner["kind"] == *kind.kind && owner["name"] == **name)
    };
    objects.filter(of_ours).collect()
}

/// The configuration of a virtual MCP server as it is here. Documented in docs/compatibility.md: the phase of a backend is
/// not in it, and the certificates of the telemetry collector are.
pub(super) fn with_our_configuration(mut object: Value) -> Value {
    if let Some(text) = object["data"]["config.yaml"].as_str() {
        let status = Regex::new("(?m)^ *workload_status: .*\n").unwrap();
        let mut text = status.replace_all(text, "").into_owned();
        if text.contains("endpoint: otel.example.com\n") {
            let legacy = "    useLegacyAttributes: true\n";
            text = text.replace(legacy, &format!("{legacy}    caCertPath: /config/certs/otel/tca/ca.crt\n"));
        }
        object["data"]["config.yaml"] = json!(text);
    }
    object
}

/// The pods of an EmbeddingServer as they are here. Documented in docs/compatibility.md: they have fewer permissions.
pub(super) fn with_least_rights(mut object: Value) -> Value {
    let owner = &object["metadata"]["ownerReferences"][0]["kind"];
    if object["kind"] == "StatefulSet" && owner == EmbeddingServers::kind().kind {
        object["spec"]["template"]["spec"]["containers"][0]["securityContext"] = json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        });
    }
    object
}

/// The Role of a proxy as it is here. Documented in docs/compatibility.md: the proxy reports what its server offers.
pub(super) fn with_reports(mut object: Value) -> Value {
    let owner = object["metadata"]["ownerReferences"][0].clone();
    let plural = match owner["kind"].as_str() {
        Some("MCPServer") => "mcpservers",
        Some("MCPRemoteProxy") => "mcpremoteproxies",
        _ => return object,
    };
    if object["kind"] != "Role" {
        return object;
    }
    if let Some(rules) = object["rules"].as_array_mut() {
        for (resource, verb) in [(plural.to_owned(), "get"), (format!("{plural}/status"), "patch")] {
            rules.push(json!({
                "apiGroups": ["toolhive.stacklok.dev"], "resources": [resource], "resourceNames": [owner["name"]],
                "verbs": [verb],
            }));
        }
    }
    object
}

/// The owners of configurations with an authorization server.
pub(super) fn with_auth_server(children: &[Value]) -> Vec<Value> {
    let configured = children.iter().filter(|child| {
        let files = child["data"].to_string();
        child["kind"] == "ConfigMap"
            && (files.contains("embedded_auth_server_config") || files.contains(paths::VMCP_AUTH_SERVER_FILE))
    });
    configured.map(|child| child["metadata"]["ownerReferences"][0]["name"].clone()).collect()
}

/// The Role of a pod as it is here. Documented in docs/compatibility.md: with an authorization server, it has rights of administrators
/// reviewed.
pub(super) fn with_reviews(mut object: Value, owners: &[Value]) -> Value {
    if object["kind"] == "Role"
        && owners.contains(&object["metadata"]["ownerReferences"][0]["name"])
        && let Some(rules) = object["rules"].as_array_mut()
    {
        rules.push(json!({
            "apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"],
        }));
    }
    object
}

/// The object with each variable of its containers once. Documented in docs/compatibility.md: server-side apply
/// identifies variables by their names, so the second of two equal ones is dropped.
pub(super) fn without_duplicate_variables(mut object: Value) -> Value {
    let containers = object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let mut seen = Vec::new();
        if let Some(variables) = container.get_mut("env").and_then(Value::as_array_mut) {
            variables.retain(|variable| {
                let new = !seen.contains(variable);
                seen.push(variable.clone());
                new
            });
        }
    }
    object
}
