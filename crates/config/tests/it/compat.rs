//! Files that ToolHive's operator wrote. `SKEP_COMPAT` names their folder.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Value, json};
use skep_config::{AuthServer, RunConfig, annotations, checksum, labels, paths, run_config::Middleware};

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConfigMap {
    kind: String,
    data: BTreeMap<String, String>,
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// The ConfigMaps that ToolHive's operator made of manifests, each with the file that has it.
fn config_maps() -> Vec<(PathBuf, ConfigMap)> {
    let compat = env::var_os("SKEP_COMPAT").expect("SKEP_COMPAT names the folder of ToolHive's files");
    let mut files = Vec::new();
    collect(&PathBuf::from(compat).join("golden"), &mut files);
    files.sort();
    files
        .into_iter()
        .flat_map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            let objects: Vec<ConfigMap> = serde_saphyr::from_multiple(&text).unwrap();
            objects.into_iter().map(move |object| (file.clone(), object))
        })
        .filter(|(_, object)| object.kind == "ConfigMap")
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.ends_with("objects.yaml") {
            files.push(path);
        }
    }
}

/// A YAML file as a value, with every number as floating point: ToolHive writes some integers with an exponent.
fn value(text: &str) -> Value {
    fn with_floats(value: Value) -> Value {
        match value {
            Value::Number(number) => json!(number.as_f64()),
            Value::Array(items) => items.into_iter().map(with_floats).collect(),
            Value::Object(map) => map.into_iter().map(|(key, value)| (key, with_floats(value))).collect(),
            other => other,
        }
    }
    with_floats(serde_saphyr::from_str(text).unwrap())
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn every_run_config_is_written_back_byte_for_byte() {
    let mut count = 0;
    for (file, map) in config_maps() {
        let Some(text) = map.data.get(paths::RUN_CONFIG_FILE) else { continue };
        let config = RunConfig::parse(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for middleware in &config.middleware_configs {
            assert!(!matches!(middleware, Middleware::Unknown(_)), "{}: {middleware:?}", file.display());
        }
        similar_asserts::assert_eq!(config.render().unwrap(), *text, "{}", file.display());
        count += 1;
    }
    assert!(count > 30, "only {count} files");
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn every_auth_server_is_written_back() {
    let mut count = 0;
    for (file, map) in config_maps() {
        let Some(text) = map.data.get(paths::VMCP_AUTH_SERVER_FILE) else { continue };
        let read: AuthServer = serde_saphyr::from_str(text).unwrap();
        similar_asserts::assert_eq!(value(&read.render().unwrap()), value(text), "{}", file.display());
        count += 1;
    }
    assert!(count > 0, "no files");
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn every_checksum_equals_the_one_on_the_config_map() {
    let mut count = 0;
    for (file, ConfigMap { data, metadata, .. }) in config_maps() {
        let component = metadata.labels.get(labels::COMPONENT).map(String::as_str);
        // Registries have another checksum, and some files have placeholders for what it covers.
        if !matches!(component, Some(labels::RUN_CONFIG | labels::VMCP_CONFIG))
            || data.values().any(|text| has_placeholder(text))
        {
            continue;
        }
        let carried = &metadata.annotations[annotations::CONTENT_CHECKSUM];
        let sum = checksum(&data, &metadata.labels, &metadata.annotations);
        assert_eq!(sum, *carried, "{}: {}", file.display(), metadata.name);
        count += 1;
    }
    assert!(count > 30, "only {count} ConfigMaps");
}

/// Whether the name of a namespace was replaced in the text.
fn has_placeholder(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "NS")
}
