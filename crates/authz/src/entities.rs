//! The entities of a document.

use std::{
    collections::{HashMap, HashSet},
    str::FromStr,
};

use cedar_policy::{Entity, EntityId, EntityTypeName, EntityUid};
use serde_json::{Map, Value, json};

use crate::{Error, attributes::Attributes, size};

const PATH: &str = "entities_json";
/// The default type of groups.
const GROUP: &str = "THVGroup";
/// The depth that serde_json parses.
const DEPTH: usize = 128;

/// Entities of a document, by uid.
#[derive(Default)]
pub(crate) struct Entities(HashMap<EntityUid, Known>);

/// An entity in a document.
struct Known {
    entity: Entity,
    attributes: Attributes,
    parents: Vec<EntityUid>,
    /// Its parents, and the entities that its attributes name: what a policy can get to from it.
    next: Vec<EntityUid>,
}

impl Entities {
    /// Parses a list in JSON. An empty text is an empty list.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let items: Vec<Value> = serde_json::from_str(text)
            .map_err(|error| Error::new(PATH, format!("it is not a list in JSON: {error}")))?;
        size::with_stack(DEPTH, || Self::read(items))
    }

    fn read(items: Vec<Value>) -> Result<Self, Error> {
        let mut entities = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut named = Vec::new();
            for part in ["attrs", "tags"] {
                collect_named(&item[part], &mut named);
            }
            entities.push((entity(&format!("{PATH}[{index}]"), item)?, named));
        }
        // Two with the same uid, or a circle of parents, are errors.
        cedar_policy::Entities::from_entities(entities.iter().map(|(entity, _)| entity.clone()), None)
            .map_err(|error| Error::new(PATH, innermost(&error)))?;
        let known = entities.into_iter().map(|(entity, named)| {
            let (uid, attributes, parents) = entity.clone().into_inner();
            let parents: Vec<_> = parents.into_iter().collect();
            let next = parents.iter().cloned().chain(named).collect();
            (uid, Known { entity, attributes: attributes.into_iter().collect(), parents, next })
        });
        Ok(Self(known.collect()))
    }

    /// The entities that a policy can get to from these, and these themselves. A decision needs no others, however many
    /// the document has.
    pub(crate) fn reachable<'a>(&'a self, from: impl IntoIterator<Item = &'a EntityUid>) -> Vec<Entity> {
        let mut open: Vec<&EntityUid> = from.into_iter().collect();
        let mut seen = HashSet::new();
        let mut reached = Vec::new();
        while let Some(uid) = open.pop() {
            if let Some(known) = self.0.get(uid).filter(|_| seen.insert(uid)) {
                reached.push(known.entity.clone());
                open.extend(&known.next);
            }
        }
        reached
    }

    /// The same for the entities that such an entity leads to, without itself.
    pub(crate) fn beyond<'a>(
        &'a self,
        uid: &EntityUid,
        parents: impl IntoIterator<Item = &'a EntityUid>,
    ) -> Vec<Entity> {
        let next = self.0.get(uid).into_iter().flat_map(|known| &known.next);
        let mut reached = self.reachable(next.chain(parents));
        reached.retain(|entity| entity.uid() != *uid);
        reached
    }

    /// An entity with the attributes that the document gives it, which override `weak` and are overridden by `strong`.
    pub(crate) fn joined(
        &self,
        uid: EntityUid,
        weak: Attributes,
        strong: Attributes,
        parents: Vec<EntityUid>,
    ) -> Option<Entity> {
        let known = self.0.get(&uid);
        let mut attributes = weak;
        attributes.extend(known.into_iter().flat_map(|known| known.attributes.clone()));
        attributes.extend(strong);
        let parents = known.into_iter().flat_map(|known| known.parents.clone()).chain(parents);
        let parents = parents.collect();
        Entity::new(uid, attributes.into_iter().collect(), parents).ok()
    }

    /// Whether an entity of such a type has an attribute.
    pub(crate) fn give(&self, types: &[&str], attribute: &str) -> bool {
        self.0.iter().any(|(uid, known)| {
            types.contains(&uid.type_name().basename()) && known.attributes.contains_key(attribute)
        })
    }

    /// Whether the entity is a parent of another one.
    pub(crate) fn has_members(&self, uid: &EntityUid) -> bool {
        self.0.values().any(|known| known.parents.contains(uid))
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

/// Adds the entities that a value names, in the notation of Cedar: `{"__entity": {"type": "…", "id": "…"}}`.
pub(crate) fn collect_named(value: &Value, named: &mut Vec<EntityUid>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_named(item, named)),
        Value::Object(fields) => {
            named.extend(fields.get("__entity").and_then(|entity| {
                let type_ = type_name(entity.get("type")?.as_str()?)?;
                Some(uid(&type_, entity.get("id")?.as_str()?))
            }));
            fields.values().for_each(|field| collect_named(field, named));
        }
        _ => {}
    }
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
