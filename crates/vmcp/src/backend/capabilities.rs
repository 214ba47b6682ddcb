//! What a backend declares that it can do.

use skep_mcp::{List, Raw};

/// The capabilities of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    tools: bool,
    prompts: bool,
    resources: bool,
    pub(crate) completions: bool,
    pub(crate) logging: bool,
    pub(crate) subscribe: bool,
    /// Whether it sends `list_changed` for all of its lists.
    pub(crate) list_changed: bool,
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
        let lists = ["tools", "prompts", "resources"];
        Self {
            tools: get("tools").is_some(),
            prompts: get("prompts").is_some(),
            resources: get("resources").is_some(),
            completions: get("completions").is_some(),
            logging: get("logging").is_some(),
            subscribe: flag("resources", "subscribe"),
            list_changed: lists.iter().all(|list| get(list).is_none() || flag(list, "listChanged")),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_what_is_declared() {
        let declared = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#;
        let capabilities = Capabilities::new(Raw::spelled(declared));
        assert!(capabilities.has(List::Tools) && capabilities.has(List::ResourceTemplates));
        assert!(!capabilities.has(List::Prompts) && !capabilities.completions);
        assert!(capabilities.subscribe && capabilities.logging && !capabilities.list_changed);
        assert_eq!(Capabilities::new(None), Capabilities { list_changed: true, ..Capabilities::default() });
    }
}
