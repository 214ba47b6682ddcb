//! ToolHive's API and its manifests: `SKEP_COMPAT` names the folder.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use kube::{
    Resource,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skep_api::{GROUP, crd, kinds, vmcp};
use skep_config::{labels, paths};

fn compat() -> PathBuf {
    env::var_os("SKEP_COMPAT").expect("SKEP_COMPAT names the folder of ToolHive's API").into()
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn every_field_of_the_published_api_is_here_as_it_must_be() {
    let crds: Vec<Value> = crd::crds().unwrap().iter().map(|crd| crd::to_json(crd).unwrap()).collect();
    let file = env::temp_dir().join(format!("skep-crds-{}.json", std::process::id()));
    fs::write(&file, json!({"items": crds}).to_string()).unwrap();
    let output = Command::new(compat().join("crd-check")).arg(&file).output().unwrap();
    fs::remove_file(file).unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    assert!(report.ends_with("1513 of 1513 fields\n"), "{report}");
}

/// The manifests that ToolHive publishes or that were written for the comparison.
fn manifests() -> Vec<(PathBuf, Value)> {
    let objects = golden::<Value>("input.yaml").into_iter();
    objects.filter(|(_, object)| object.is_object()).collect()
}

/// The objects in the files of this name.
fn golden<T: DeserializeOwned>(name: &str) -> Vec<(PathBuf, T)> {
    let mut files = Vec::new();
    collect(&compat().join("golden"), name, &mut files);
    files.sort();
    assert!(files.len() > 30, "only {} files", files.len());
    files
        .into_iter()
        .flat_map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            let objects: Vec<T> = serde_saphyr::from_multiple(&text).unwrap();
            objects.into_iter().map(move |object| (file.clone(), object))
        })
        .collect()
}

fn collect(folder: &Path, name: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, name, files);
        } else if path.ends_with(name) {
            files.push(path);
        }
    }
}

fn is_ours(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP))
}

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn every_manifest_is_accepted_with_strict_validation() {
    let test = skep_testkit::namespace().await;
    for (file, mut object) in manifests() {
        // The manifests name other namespaces; what counts is that the object is valid.
        object["metadata"]["namespace"] = json!(test.name());
        let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        if kind == "Namespace" {
            continue;
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = with_plural(ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)));
        let path = DynamicObject::url_path(&resource, Some(test.name()));
        let request = http::Request::post(format!("{path}?dryRun=All&fieldValidation=Strict"));
        let request = request.body(serde_json::to_vec(&object).unwrap()).unwrap();
        if let Err(error) = test.client().request::<Value>(request).await {
            panic!("{}: {error}", file.display());
        }
    }
}

/// kube guesses plurals; ours are known.
fn with_plural(mut resource: ApiResource) -> ApiResource {
    let crds = crd::crds().unwrap();
    if let Some(crd) =
        crds.iter().find(|crd| crd.spec.group == resource.group && crd.spec.names.kind == resource.kind)
    {
        resource.plural.clone_from(&crd.spec.names.plural);
    }
    resource
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn every_manifest_survives_reading_and_writing() {
    for (file, object) in manifests().into_iter().filter(|(_, object)| is_ours(object)) {
        macro_rules! written {
            ($($kind:ident),+) => {
                match object["kind"].as_str().unwrap() {
                    $( stringify!($kind) => written::<kinds::$kind>(&object), )+
                    kind => panic!("{}: no such kind: {kind}", file.display()),
                }
            };
        }
        let written = skep_api::for_each_kind!(written);
        similar_asserts::assert_eq!(written, object, "{}", file.display());
    }
}

fn written<K: Serialize + DeserializeOwned>(object: &Value) -> Value {
    let read: K = serde_json::from_value(object.clone()).unwrap();
    serde_json::to_value(read).unwrap()
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn every_configuration_of_a_virtual_server_is_written_back() {
    let value = |text: &str| with_floats(serde_saphyr::from_str(text).unwrap());
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object {
        kind: String,
        metadata: Metadata,
        data: BTreeMap<String, String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        labels: BTreeMap<String, String>,
        // Without a type, the checksum in an annotation can be taken for a number.
        #[serde(rename = "annotations")]
        _annotations: BTreeMap<String, String>,
    }
    let mut count = 0;
    for (file, Object { kind, metadata, data }) in golden("objects.yaml") {
        let component = metadata.labels.get(labels::COMPONENT).map(String::as_str);
        if kind != "ConfigMap" || component != Some(labels::VMCP_CONFIG) {
            continue;
        }
        let text = &data[paths::VMCP_CONFIG_FILE];
        let config =
            vmcp::Config::parse(text).unwrap_or_else(|error| panic!("{}: {error:?}", file.display()));
        similar_asserts::assert_eq!(value(&config.render().unwrap()), value(text), "{}", file.display());
        count += 1;
    }
    assert!(count > 5, "only {count} files");
}

/// The value with every number as floating point: ToolHive writes some integers with an exponent.
fn with_floats(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, with_floats(value))).collect(),
        Value::Array(items) => items.into_iter().map(with_floats).collect(),
        Value::Number(number) => number.as_f64().into(),
        other => other,
    }
}
