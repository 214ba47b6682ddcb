//! Files of manifests.

mod files;
mod lines;
mod schema;
mod yaml;

use anyhow::ensure;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::core::DynamicObject;
use serde_json::Value;
use skep_api::{GROUP, crd};
use skep_config::{FieldError, FieldPath};
use skep_operator::render::RenderError;

pub(crate) use self::files::{ManifestFiles, ManifestText};
use self::lines::place;
pub(crate) use self::lines::{Lines, located};
use crate::output::plain;

/// The objects of some files, with their positions.
#[derive(Default)]
pub(crate) struct Manifests {
    files: Vec<(String, Lines)>,
    pub(crate) objects: Vec<DynamicObject>,
    /// The position of each object that comes from a file. Objects that come from elsewhere follow these.
    positions: Vec<Position>,
}

/// The position of an object.
#[derive(Clone, Copy)]
struct Position {
    file: usize,
    /// The number of its document.
    document: usize,
    /// Its number in a list.
    item: Option<usize>,
}

impl Manifests {
    /// The objects of some texts. Objects without a namespace get the given one.
    pub(crate) fn of(texts: &[ManifestText], namespace: &str) -> anyhow::Result<Self> {
        let crds = crd::crds()?.iter().map(crd::to_json).collect::<Result<Vec<_>, _>>()?;
        let mut manifests = Self::default();
        let mut mistakes = Vec::new();
        for (file, ManifestText { name, text }) in texts.iter().enumerate() {
            let documents: Vec<Value> = yaml::documents(text).map_err(|error| not_yaml(name, &error))?;
            manifests.files.push((name.clone(), Lines::new(text)));
            for (document, value) in documents.into_iter().enumerate() {
                for (item, value) in objects_of(value) {
                    let position = Position { file, document, item };
                    if let Err(errors) = manifests.add(value, position, namespace, &crds) {
                        mistakes.extend(errors);
                    }
                }
            }
        }
        ensure!(mistakes.is_empty(), "{}", mistakes.join("\n"));
        Ok(manifests)
    }

    /// Adds an object, or returns everything that is wrong with it.
    fn add(
        &mut self,
        value: Value,
        position: Position,
        namespace: &str,
        crds: &[Value],
    ) -> Result<(), Vec<String>> {
        let owner = owner(&value);
        let object = object(value, namespace, crds).map_err(|errors| {
            let located = |error: &FieldError| format!("{}{owner}{error}", self.line(position, &error.field));
            errors.iter().map(located).collect::<Vec<_>>()
        })?;
        if let Some(first) = self.objects.iter().position(|other| is_same(other, &object)) {
            let root = FieldPath::default();
            let Position { file, .. } = self.positions[first];
            let first = match self.line_number(self.positions[first], &root).unwrap_or_default() {
                line if file == position.file => format!("line {line}"),
                line => format!("{}:{line}", self.files[file].0),
            };
            let place = self.line(position, &root);
            return Err(vec![format!(
                "{place}{owner}duplicate of the object in {first}: rename one of them"
            )]);
        }
        self.objects.push(object);
        self.positions.push(position);
        Ok(())
    }

    /// The place of a field of an object, as `file:line: `.
    pub(crate) fn place(&self, kind: &str, namespace: &str, name: &str, field: &FieldPath) -> String {
        let index = self.objects.iter().position(|object| {
            object.types.as_ref().is_some_and(|types| types.kind == kind)
                && object.metadata.namespace.as_deref() == Some(namespace)
                && object.metadata.name.as_deref() == Some(name)
        });
        let position = index.and_then(|index| self.positions.get(index));
        position.map(|position| self.line(*position, field)).unwrap_or_default()
    }

    /// The place of an object that cannot be parsed. The error names no namespace, so the first object of that name counts.
    pub(crate) fn place_of(&self, error: &RenderError) -> String {
        let RenderError::Unreadable { kind, name, field, .. } = error;
        let namespaces = self.objects.iter().filter(|object| object.metadata.name.as_ref() == Some(name));
        let namespace = namespaces.filter_map(|object| object.metadata.namespace.as_deref()).next();
        self.place(kind, namespace.unwrap_or_default(), name, field)
    }

    fn line(&self, position: Position, field: &FieldPath) -> String {
        place(&self.files[position.file].0, self.line_number(position, field))
    }

    fn line_number(&self, Position { file, document, item }: Position, field: &FieldPath) -> Option<u64> {
        let lines = &self.files[file].1;
        match item {
            Some(item) => lines.line(document, &FieldPath::from("items").index(item).join(field.clone())),
            None => lines.line(document, field),
        }
    }
}

/// The objects of a document: itself, or the items of a list such as `kubectl get -o yaml` prints, with their numbers.
fn objects_of(mut document: Value) -> Vec<(Option<usize>, Value)> {
    if document.is_null() {
        return Vec::new();
    }
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => {
            items.into_iter().enumerate().map(|(item, value)| (Some(item), value)).collect()
        }
        Some(items) => {
            document["items"] = items;
            vec![(None, document)]
        }
        None => vec![(None, document)],
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

/// The error of the parser with its place, and without a drawing of the source.
fn not_yaml(name: &str, error: &serde_saphyr::Error) -> anyhow::Error {
    use serde_saphyr::{DefaultMessageFormatter, Error, MessageFormatter};
    let what = match error.without_snippet() {
        // The parser's own message has a hint for programs that call it.
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate mapping key: {key}"),
        Error::DuplicateMappingKey { .. } => "duplicate mapping key".to_owned(),
        error => DefaultMessageFormatter.format_message(error).into_owned(),
    };
    let place = place(name, error.location().map(|location| location.line()));
    anyhow::anyhow!("{place}not valid YAML: {}", plain(&what))
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
