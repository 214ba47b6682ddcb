//! Valid objects of every kind, as files, and what must hold for them.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use skep_testkit::repository;

use crate::constraints::{Step, walk};

/// A valid object with a name to find it by.
pub(crate) struct Specimen {
    pub(crate) name: String,
    pub(crate) object: Value,
}

/// The specimens of a kind, sorted by name.
pub(crate) fn of(kind: &str) -> Vec<Specimen> {
    let folder = folder("specimens").join(kind);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut specimens: Vec<Specimen> = files
        .map(|file| file.unwrap().path())
        .map(|file| Specimen {
            name: file.file_stem().unwrap().to_string_lossy().into(),
            object: yaml(&file),
        })
        .collect();
    specimens.sort_by(|a, b| a.name.cmp(&b.name));
    specimens
}

pub(crate) fn folder(name: &str) -> PathBuf {
    repository("crates/api/tests/it").join(name)
}

pub(crate) fn yaml<T: DeserializeOwned>(file: &PathBuf) -> T {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"))
}

/// Fails unless some specimen holds each field of the schema: what none holds is not tried.
pub(crate) fn hold_every_field(kind: &str, schema: &Value) {
    let specimens = of(kind);
    let mut missing = BTreeSet::new();
    walk(schema, &mut |path, _| {
        if !specimens.iter().any(|specimen| locate(&specimen.object, path).is_some()) {
            missing.insert(Step::join(path));
        }
    });
    let add = format!("add it to crates/api/tests/it/specimens/{kind}/full.yaml, or to another file there");
    assert!(missing.is_empty(), "no specimen of {kind} has this: {add}: {missing:#?}");
}

/// The first place in the object that the path of a schema leads to, as a JSON pointer.
pub(crate) fn locate(object: &Value, path: &[Step]) -> Option<String> {
    let Some((step, rest)) = path.split_first() else { return Some(String::new()) };
    let places: Vec<(String, &Value)> = match (step, object) {
        (Step::Field(name), Value::Object(map)) => {
            map.get(name).map(|value| (name.clone(), value)).into_iter().collect()
        }
        (Step::Item, Value::Array(items)) => {
            items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect()
        }
        (Step::Entry, Value::Object(map)) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        _ => vec![],
    };
    places.into_iter().find_map(|(key, value)| {
        let key = key.replace('~', "~0").replace('/', "~1");
        Some(format!("/{key}{}", locate(value, rest)?))
    })
}
