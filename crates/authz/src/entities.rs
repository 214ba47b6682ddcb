//! The entities of a document.

use std::{collections::HashMap, str::FromStr};

use cedar_policy::{Entity, EntityId, EntityTypeName, EntityUid};
use serde_json::{Map, Value, json};

use crate::{Error, attributes::Attributes, size};

const PATH: &str = "entities_json";
/// The default type of groups.
const GROUP: &str = "THVGroup";
/// The depth that serde_json parses.
const DEPTH: usize = 128;

/// Entities of a document: all of them, and the fields of each.
#[derive(Clone)]
pub(crate) struct Entities {
    pub(crate) all: cedar_policy::Entities,
    known: HashMap<EntityUid, Known>,
}

/// The fields of an entity in a document.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) attributes: Attributes,
    pub(crate) parents: Vec<EntityUid>,
}

impl Entities {
    /// Parses a list in JSON. An empty text is an empty list.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        if text.trim().is_empty() {
            return Ok(Self { all: cedar_policy::Entities::empty(), known: HashMap::new() });
        }
        let items: Vec<Value> = serde_json::from_str(text)
            .map_err(|error| Error::new(PATH, format!("it is not a list in JSON: {error}")))?;
        size::with_stack(DEPTH, || Self::read(items))
    }

    fn read(items: Vec<Value>) -> Result<Self, Error> {
        let mut entities = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            entities.push(entity(&format!("{PATH}[{index}]"), item)?);
        }
        let known = entities.iter().cloned().map(|entity| {
            let (uid, attributes, parents) = entity.into_inner();
            let known = Known {
                attributes: attributes.into_iter().collect(),
                parents: parents.into_iter().collect(),
            };
            (uid, known)
        });
        let known = known.collect();
        let all = cedar_policy::Entities::from_entities(entities, None)
            .map_err(|error| Error::new(PATH, innermost(&error)))?;
        Ok(Self { all, known })
    }

    /// The fields that the document gives an entity.
    pub(crate) fn known(&self, uid: &EntityUid) -> Option<&Known> {
        self.known.get(uid)
    }

    /// Whether an entity of such a type has an attribute.
    pub(crate) fn give(&self, types: &[&str], attribute: &str) -> bool {
        self.known.iter().any(|(uid, known)| {
            types.contains(&uid.type_name().basename()) && known.attributes.contains_key(attribute)
        })
    }

    /// Whether the entity is a parent of another one.
    pub(crate) fn has_members(&self, uid: &EntityUid) -> bool {
        self.known.values().any(|known| known.parents.contains(uid))
    }
}

fn entity(path: &str, mut item: Value) -> Result<Entity, Error> {
    let Some(fields) = item.as_object_mut() else {
        let problem = r#"write an entity: {"uid": {"type": "…", "id": "…"}, "attrs": {}, "parents": []}"#;
        return Err(Error::new(path, problem));
    };
    // Cedar requires both, and most entities have only one of them.
    fields.entry("attrs").or_insert_with(|| json!({}));
    fields.entry("parents").or_insert_with(|| json!([]));
    for part in ["attrs", "tags"] {
        // Cedar's own message for these has no path.
        if let Some((at, wrong)) = fields.get(part).and_then(unknown) {
            let problem = format!(
                "{wrong} is no value of Cedar: leave it out, or write a decimal as \
                 {{\"__extn\": {{\"fn\": \"decimal\", \"arg\": \"1.5\"}}}}"
            );
            return Err(Error::new(format!("{path}.{part}{at}"), problem));
        }
    }
    Entity::from_json_value(item, None).map_err(|error| Error::new(path, innermost(&error)))
}

/// The first null or fraction in a value, and its path.
fn unknown(value: &Value) -> Option<(String, &Value)> {
    match value {
        Value::Null => Some((String::new(), value)),
        Value::Number(number) if !number.is_i64() => Some((String::new(), value)),
        Value::Array(items) => {
            first(items.iter().enumerate().map(|(index, item)| (format!("[{index}]"), item)))
        }
        Value::Object(fields) => first(named(fields)),
        _ => None,
    }
}

fn named(fields: &Map<String, Value>) -> impl Iterator<Item = (String, &Value)> {
    fields.iter().map(|(name, field)| (format!(".{name}"), field))
}

fn first<'a>(mut parts: impl Iterator<Item = (String, &'a Value)>) -> Option<(String, &'a Value)> {
    parts.find_map(|(name, part)| unknown(part).map(|(at, wrong)| (format!("{name}{at}"), wrong)))
}

/// The innermost cause, which is the most specific.
fn innermost(error: &cedar_policy::entities_errors::EntitiesError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The type of entity that groups are.
pub(crate) fn group_type(name: &str) -> Result<EntityTypeName, Error> {
    const FIELD: &str = "group_entity_type";
    if name.contains("::") {
        let problem = format!("{name:?} has a namespace: write a name without \"::\", such as {GROUP}");
        return Err(Error::new(FIELD, problem));
    }
    type_name(if name.is_empty() { GROUP } else { name })
        .ok_or_else(|| Error::new(FIELD, format!("{name:?} is no name of a type: write one such as {GROUP}")))
}

/// A type of entities.
pub(crate) fn type_name(name: &str) -> Option<EntityTypeName> {
    EntityTypeName::from_str(name).ok()
}

/// The uid of an entity. Any text can be an id.
pub(crate) fn uid(type_: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(type_.clone(), EntityId::new(id))
}
