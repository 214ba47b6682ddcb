//! A session as a record that all replicas can read.
//!
//! Where ToolHive's record has the same, it has the same keys.

use std::collections::BTreeMap;

use serde_json::Value;
use skep_gateway::identity::Owner;
use skep_mcp::Revision;

use crate::{backend::Resumable, level::Level};

const BACKENDS: &str = "vmcp.backend.ids";
const BACKEND_SESSION: &str = "vmcp.backend.session.";
const BACKEND_REVISION: &str = "skep.backend.revision.";
const OWNER: &str = "skep.owner";
const CAPABILITIES: &str = "skep.capabilities";
const LEVEL: &str = "skep.level";
const SUBSCRIPTIONS: &str = "skep.subscriptions";
const GIVEN_UP: &str = "skep.given-up";

/// What is stored of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) owner: Owner,
    pub(crate) capabilities: String,
    pub(crate) level: Option<Level>,
    pub(crate) subscriptions: Vec<Box<str>>,
    /// The requests that were given up, if there are any.
    pub(crate) given_up: Option<String>,
    /// The sessions at backends.
    pub(crate) links: BTreeMap<String, Resumable>,
}

impl Record {
    /// As a map of texts, in JSON.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let names: Vec<&str> = self.links.keys().map(String::as_str).collect();
        let mut map = BTreeMap::from([
            (BACKENDS.to_owned(), names.join(",")),
            (OWNER.to_owned(), self.owner.to_text()),
            (CAPABILITIES.to_owned(), self.capabilities.clone()),
        ]);
        map.extend(self.level.map(|level| (LEVEL.to_owned(), level.name().to_owned())));
        map.extend(self.given_up.iter().map(|known| (GIVEN_UP.to_owned(), known.clone())));
        if !self.subscriptions.is_empty() {
            let list: Vec<Value> = self.subscriptions.iter().map(|uri| (**uri).into()).collect();
            map.insert(SUBSCRIPTIONS.to_owned(), Value::Array(list).to_string());
        }
        for (backend, link) in &self.links {
            map.insert(format!("{BACKEND_SESSION}{backend}"), link.session.clone());
            map.insert(format!("{BACKEND_REVISION}{backend}"), link.revision.name().to_owned());
        }
        // Only texts: it cannot fail.
        serde_json::to_vec(&map).unwrap_or_default()
    }

    /// From these bytes. A record of another program does not have what a session needs.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let map: BTreeMap<String, String> = serde_json::from_slice(bytes).ok()?;
        let subscriptions = map.get(SUBSCRIPTIONS).map(|list| serde_json::from_str(list)).transpose().ok()?;
        let link = |(key, session): (&String, &String)| {
            let backend = key.strip_prefix(BACKEND_SESSION)?;
            let revision = Revision::named(map.get(&format!("{BACKEND_REVISION}{backend}"))?.as_bytes())?;
            Some((backend.to_owned(), Resumable { session: session.clone(), revision }))
        };
        Some(Self {
            owner: Owner::from_text(map.get(OWNER)?)?,
            capabilities: map.get(CAPABILITIES)?.clone(),
            level: map.get(LEVEL).and_then(|level| Level::named(level)),
            subscriptions: subscriptions.unwrap_or_default(),
            given_up: map.get(GIVEN_UP).cloned(),
            links: map.iter().filter_map(link).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_being_written_and_read() {
        let link = Resumable { session: "s1".into(), revision: Revision::V2025_06_18 };
        let record = Record {
            owner: Owner::ANONYMOUS,
            capabilities: r#"{"roots":{}}"#.into(),
            level: Level::named("info"),
            subscriptions: vec!["kit://a,b".into()],
            given_up: Some(r#"[["7",1]]"#.into()),
            links: BTreeMap::from([("alpha".into(), link)]),
        };
        assert_eq!(Record::parse(&record.to_bytes()), Some(record.clone()));
        let written: Value = serde_json::from_slice(&record.to_bytes()).unwrap();
        assert_eq!(
            (&written[BACKENDS], &written["vmcp.backend.session.alpha"]),
            (&"alpha".into(), &"s1".into())
        );
        let empty = Record {
            level: None,
            subscriptions: Vec::new(),
            given_up: None,
            links: BTreeMap::new(),
            ..record
        };
        assert_eq!(Record::parse(&empty.to_bytes()), Some(empty));
    }

    #[test]
    fn a_record_of_another_program_is_no_session() {
        for record in ["", "{", "{}", r#"{"vmcp.backend.ids":"","vmcp.identity.binding":"unauthenticated"}"#]
        {
            assert_eq!(Record::parse(record.as_bytes()), None, "{record}");
        }
    }
}
