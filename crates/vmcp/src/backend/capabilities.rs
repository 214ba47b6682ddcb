//! What a backend declares that it can do, and in which revisions.

use skep_mcp::{Era, List, Raw, Revision};

/// The capabilities of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    tools: bool,
    prompts: bool,
    resources: bool,
    pub(crate) completions: bool,
    pub(crate) logging: bool,
    pub(crate) subscribe: bool,
    announces_tools: bool,
    announces_prompts: bool,
    announces_resources: bool,
}

impl Capabilities {
    /// What the `capabilities` of a backend declare.
    pub(crate) fn new(declared: Option<Raw<'_>>) -> Self {
        let get = |name: &str| declared.and_then(|declared| declared.get(name));
        let flag = |name: &str, field: &str| {
            get(name)
                .and_then(|capability| capability.get(field))
                .is_some_and(|value| value.as_str() == "true")
        };
        Self {
            tools: get("tools").is_some(),
            prompts: get("prompts").is_some(),
            resources: get("resources").is_some(),
            completions: get("completions").is_some(),
            logging: get("logging").is_some(),
            subscribe: flag("resources", "subscribe"),
            announces_tools: flag("tools", "listChanged"),
            announces_prompts: flag("prompts", "listChanged"),
            announces_resources: flag("resources", "listChanged"),
        }
    }

    /// Whether it sends `list_changed` for all of its lists.
    pub(crate) fn announces_all(&self) -> bool {
        (!self.tools || self.announces_tools)
            && (!self.prompts || self.announces_prompts)
            && (!self.resources || self.announces_resources)
    }

    /// The lists whose changes it announces, by the names that `subscriptions/listen` has for them.
    pub(crate) fn announced(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.announces_tools, "toolsListChanged"),
            (self.announces_prompts, "promptsListChanged"),
            (self.announces_resources, "resourcesListChanged"),
        ];
        all.into_iter().filter(|(announces, _)| *announces).map(|(_, name)| name)
    }

    /// Whether it has such a list.
    pub(crate) fn has(&self, list: List) -> bool {
        match list {
            List::Tools => self.tools,
            List::Prompts => self.prompts,
            List::Resources | List::ResourceTemplates => self.resources,
        }
    }
}

/// Which revisions a backend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spoken {
    /// Whether it has sessions, as until 2025-11-25.
    has_sessions: bool,
    /// What it declares for 2026-07-28, if it speaks that.
    modern: Option<Capabilities>,
}

impl Spoken {
    pub(crate) const LEGACY: Self = Self { has_sessions: true, modern: None };

    /// What the result of `server/discover` declares.
    pub(crate) fn discovered(result: Raw<'_>) -> Self {
        let versions = result.get("supportedVersions").and_then(|versions| versions.items().ok());
        let versions = versions.unwrap_or_default();
        let names: Vec<_> = versions.iter().filter_map(|version| version.as_text()).collect();
        let era = |era: Era| {
            names
                .iter()
                .filter_map(|name| Revision::named(name.as_bytes()))
                .any(|revision| revision.era() == era)
        };
        let modern = era(Era::Modern).then(|| Capabilities::new(result.get("capabilities")));
        Self { has_sessions: modern.is_none() || era(Era::Legacy), modern }
    }

    /// The same for a backend that refuses sessions, if it can do without.
    pub(crate) fn without_sessions(self) -> Option<(Self, Capabilities)> {
        Some((Self { has_sessions: false, ..self }, self.modern?))
    }

    /// What it declares, if 2026-07-28 is to be spoken for a client of this era.
    pub(crate) fn modern_for(self, preferred: Era) -> Option<Capabilities> {
        self.modern.filter(|_| preferred == Era::Modern || !self.has_sessions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_spoken_for_in_its_own_era_where_the_backend_speaks_it() {
        let spoken = |versions: &str| {
            let result = format!(r#"{{"supportedVersions":{versions},"capabilities":{{"tools":{{}}}}}}"#);
            let spoken = Spoken::discovered(Raw::spelled(&result).unwrap());
            [Era::Legacy, Era::Modern].map(|era| spoken.modern_for(era).is_some())
        };
        assert_eq!(spoken(r#"["2026-07-28","2025-11-25"]"#), [false, true]);
        assert_eq!(spoken(r#"["2026-07-28","2099-01-01"]"#), [true, true]);
        assert_eq!(spoken(r#"["2025-06-18"]"#), [false, false]);
        assert_eq!(spoken("[]"), [false, false]);
    }

    #[test]
    fn a_capability_is_what_is_declared() {
        let declared = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#;
        let capabilities = Capabilities::new(Raw::spelled(declared));
        assert!(capabilities.has(List::Tools) && capabilities.has(List::ResourceTemplates));
        assert!(!capabilities.has(List::Prompts) && !capabilities.completions);
        assert!(capabilities.subscribe && capabilities.logging && !capabilities.announces_all());
        assert_eq!(capabilities.announced().collect::<Vec<_>>(), ["toolsListChanged"]);
        assert!(Capabilities::new(None).announces_all());
    }
}
