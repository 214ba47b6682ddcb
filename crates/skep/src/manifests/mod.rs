//! Files of manifests.

mod lines;
mod schema;

use std::{fs, path::Path};

use anyhow::{Context, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::core::DynamicObject;
use serde_json::Value;
use skep_api::{GROUP, crd};
use skep_config::{FieldError, FieldPath};
use skep_operator::render::RenderError;

/// The objects of a file, with their positions.
#[derive(Default)]
pub(crate) struct Manifests {
    name: String,
    text: String,
    pub(crate) objects: Vec<DynamicObject>,
    /// The number of each object's document.
    documents: Vec<usize>,
}

impl Manifests {
    pub(crate) fn read(file: &Path, namespace: &str) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::of(&text, &file.display().to_string(), namespace)
    }

    /// The objects of a text, which errors refer to as `name`. Objects without a namespace get the given one.
    pub(crate) fn of(text: &str, name: &str, namespace: &str) -> anyhow::Result<Self> {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(text).map_err(|error| not_yaml(name, &error))?;
        let crds = crd::crds()?.iter().map(crd::to_json).collect::<Result<Vec<_>, _>>()?;
        let mut manifests = Self { name: name.into(), text: text.into(), ..Self::default() };
        let mut mistakes = Vec::new();
        for (number, document) in documents.into_iter().enumerate() {
            if document.is_null() {
                continue;
            }
            let owner = owner(&document);
            let object = match object(document, namespace, &crds) {
                Ok(object) => object,
                Err(errors) => {
                    let located = |error: &FieldError| {
                        format!("{}{owner}{error}", manifests.line(number, &error.field))
                    };
                    mistakes.extend(errors.iter().map(located));
                    continue;
                }
            };
            if let Some(first) = manifests.objects.iter().position(|other| is_same(other, &object)) {
                let root = FieldPath::default();
                let first = lines::line(text, manifests.documents[first], &root).unwrap_or_default();
                let place = manifests.line(number, &root);
                mistakes.push(format!(
                    "{place}{owner}duplicate of the object in line {first}: rename one of them"
                ));
                continue;
            }
            manifests.objects.push(object);
            manifests.documents.push(number);
        }
        ensure!(mistakes.is_empty(), "{}", mistakes.join("\n"));
        Ok(manifests)
    }

    /// The place of a field of an object, as `file:line: `.
    pub(crate) fn place(&self, kind: &str, namespace: &str, name: &str, field: &FieldPath) -> String {
        let position = self.objects.iter().position(|object| {
            object.types.as_ref().is_some_and(|types| types.kind == kind)
                && object.metadata.namespace.as_deref() == Some(namespace)
                && object.metadata.name.as_deref() == Some(name)
        });
        match position.and_then(|index| self.documents.get(index)) {
            Some(document) => self.line(*document, field),
            None => self.file(),
        }
    }

    /// The place of an object that cannot be parsed. The error names no namespace, so the first object of that name counts.
    pub(crate) fn place_of(&self, error: &RenderError) -> String {
        let RenderError::Unreadable { kind, name, field, .. } = error;
        let namespaces = self.objects.iter().filter(|object| object.metadata.name.as_ref() == Some(name));
        let namespace = namespaces.filter_map(|object| object.metadata.namespace.as_deref()).next();
        self.place(kind, namespace.unwrap_or_default(), name, field)
    }

    /// The file as `file: `, or nothing if the text came from elsewhere.
    pub(crate) fn file(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) }
    }

    fn line(&self, document: usize, field: &FieldPath) -> String {
        match lines::line(&self.text, document, field) {
            Some(line) => format!("{}:{line}: ", self.name),
            None => self.file(),
        }
    }
}

/// The path of a field of a spec, from the root of the object.
pub(crate) fn in_spec(field: &FieldPath) -> FieldPath {
    FieldPath::from("spec").join(field.clone())
}

/// The kind and name of an object as `kind name: `, as far as it has them.
fn owner(document: &Value) -> String {
    let (kind, name) = (document["kind"].as_str(), document["metadata"]["name"].as_str());
    let known: Vec<&str> = [kind, name].into_iter().flatten().collect();
    if known.is_empty() { String::new() } else { format!("{}: ", known.join(" ")) }
}

fn is_same(one: &DynamicObject, other: &DynamicObject) -> bool {
    one.types == other.types
        && one.metadata.name == other.metadata.name
        && one.metadata.namespace == other.metadata.namespace
}

/// Only the first line is kept; the rest of the message is a drawing of the source.
fn not_yaml(name: &str, error: &serde_saphyr::Error) -> anyhow::Error {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let what = first
        .split_once(": ")
        .filter(|(place, _)| place.starts_with("line "))
        .map_or(first, |(_, what)| what);
    // This hint is for programs that call the parser.
    let what = what.split(", set DuplicateKeyPolicy").next().unwrap_or(what);
    match error.location() {
        Some(place) => anyhow::anyhow!("{name}:{}: not valid YAML: {what}", place.line()),
        None => anyhow::anyhow!("{name}: not valid YAML: {what}"),
    }
}

/// A document as an object, with what the API server would set. The paths of errors start at the root of the object.
fn object(mut document: Value, namespace: &str, crds: &[Value]) -> Result<DynamicObject, Vec<FieldError>> {
    let (api_version, kind) = (document["apiVersion"].as_str(), document["kind"].as_str());
    let (Some(api_version), Some(kind)) = (api_version, kind) else {
        return Err(vec![FieldError::new("", "apiVersion or kind is missing: each document needs both")]);
    };
    let mut errors = match api_version.split_once('/') {
        Some((GROUP, version)) => schema::check(&document, kind, version, crds),
        _ => Vec::new(),
    };
    if !document["metadata"]["name"].is_string() {
        errors.push(FieldError::new("metadata.name", "is required"));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
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
    serde_json::from_value(document).map_err(|error| vec![FieldError::new("", error.to_string())])
}

fn kind_is(document: &Value, kind: &str) -> bool {
    document["apiVersion"] == "v1" && document["kind"] == kind
}

/// Encodes stringData into data, as the API server does.
fn encode(secret: &mut Value) {
    let Value::Object(plain) = secret["stringData"].take() else { return };
    for (key, value) in plain {
        let value = value.as_str().unwrap_or_default();
        secret["data"][key] = STANDARD.encode(value).into();
    }
}
