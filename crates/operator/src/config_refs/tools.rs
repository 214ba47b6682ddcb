//! MCPToolConfig: which tools a proxy offers, and under which names and descriptions.

use std::collections::BTreeMap;

use skep_api::{
    conditions::ToolNameWarning,
    kinds::{MCPToolConfig, MCPToolConfigSpec},
    refs::ToolConfigRef,
    tools,
    vmcp::WorkloadTools,
};
use skep_config::{FieldError, FieldPath, RunConfig, field, run_config::ToolOverride};
use skep_converge::Finalizer;

use super::{ConfigRef, non_empty, or_empty};
use crate::{config_controller::Config, reconcile::Condition};

impl Config for MCPToolConfig {
    // ToolHive's name, which does not follow the pattern of the others.
    const CONFIG_FINALIZER: Finalizer = Finalizer("toolhive.stacklok.dev/toolconfig-finalizer");

    fn check(spec: &MCPToolConfigSpec) -> Vec<FieldError> {
        // Proxies also accept the filter as one string, separated by commas.
        let is_invalid = |tool: &str| tool.is_empty() || tool.contains([',', '\n', '\r']);
        let names =
            spec.tools_filter.iter().enumerate().filter(|(_, tool)| is_invalid(tool)).map(|(index, tool)| {
                let message = format!("{tool:?} cannot be the name of a tool: remove commas and line breaks");
                FieldError::new(FieldPath::from("toolsFilter").index(index), message)
            });
        let is_empty = |change: &tools::ToolOverride| {
            non_empty(&change.name).is_none()
                && non_empty(&change.description).is_none()
                && change.annotations.is_none()
        };
        let overrides = spec.tools_override.iter().filter(|(_, change)| is_empty(change)).map(|(tool, _)| {
            let message = "changes nothing: set name, description or annotations";
            FieldError::new(FieldPath::from("toolsOverride").key(tool), message)
        });
        names.chain(overrides).collect()
    }

    fn further_conditions(spec: &MCPToolConfigSpec) -> Vec<Condition> {
        name_warning([(FieldPath::from("toolsOverride"), &spec.tools_override)]).into_iter().collect()
    }
}

/// The warning about tools that overrides give the same name. Each map of overrides has its path.
pub(crate) fn name_warning<'a>(
    overrides: impl IntoIterator<Item = (FieldPath, &'a BTreeMap<String, tools::ToolOverride>)>,
) -> Option<Condition> {
    let duplicates = overrides.into_iter().flat_map(|(path, overrides)| {
        tools::same_names(overrides).map(move |(tool, name, other)| {
            let message = format!(
                "{name:?} is the name of {other} as well, and only one is offered: give each another name"
            );
            FieldError::new(path.clone().key(tool).join("name"), message)
        })
    });
    let message = field::joined(&duplicates.collect::<Vec<_>>());
    (!message.is_empty()).then(|| Condition::new(ToolNameWarning::DuplicateToolName, message))
}

impl ConfigRef<ToolConfigRef> {
    /// Adds the tools that the proxy offers.
    pub(crate) fn add_to(&self, run_config: &mut RunConfig) {
        if let Some(config) = self.config() {
            run_config.tools_filter.clone_from(&config.spec.tools_filter);
            run_config.tools_override = tools_override(&config.spec);
        }
    }

    /// Completes the tools of a virtual server's backend.
    pub(crate) fn complete(&self, tools: &mut WorkloadTools) {
        let Some(config) = self.config() else { return };
        if tools.filter.is_empty() {
            tools.filter.clone_from(&config.spec.tools_filter);
        }
        for (tool, change) in &config.spec.tools_override {
            tools.overrides.entry(tool.clone()).or_insert_with(|| change.clone());
        }
    }
}

/// The names and descriptions that clients see. A RunConfig has no annotations: only a virtual MCP server overrides
/// these.
pub(super) fn tools_override(spec: &MCPToolConfigSpec) -> BTreeMap<String, ToolOverride> {
    let changes = spec.tools_override.iter().map(|(tool, change)| {
        let name = or_empty(&change.name);
        let description = or_empty(&change.description);
        (tool.clone(), ToolOverride { name, description })
    });
    changes.filter(|(_, change)| *change != ToolOverride::default()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config_refs::samples::{fields, sample};

    #[test]
    fn a_filter_holds_names() {
        assert_eq!(MCPToolConfig::check(&sample(json!({"toolsFilter": ["find", "fetch page"]}))), []);
        for bad in ["", "a,b", "a\nb", "a\r"] {
            let errors = MCPToolConfig::check(&sample(json!({"toolsFilter": ["find", bad]})));
            assert_eq!(errors.len(), 1, "{errors:?}");
            let error = errors[0].to_string();
            assert!(error.starts_with(&format!("toolsFilter[1]: {bad:?} ")), "{error}");
        }
    }

    #[test]
    fn an_override_changes_something() {
        for change in [json!({"name": "n"}), json!({"description": "d"}), json!({"annotations": {}})] {
            assert_eq!(MCPToolConfig::check(&sample(json!({"toolsOverride": {"find": change}}))), []);
        }
        for nothing in [json!({}), json!({"name": ""})] {
            let errors = MCPToolConfig::check(&sample(json!({"toolsOverride": {"find": nothing}})));
            let message = "changes nothing: set name, description or annotations";
            assert_eq!(errors, [FieldError::new(FieldPath::from("toolsOverride").key("find"), message)]);
        }
    }

    #[test]
    fn every_mistake_is_reported() {
        let spec = sample(json!({"toolsFilter": ["", "a,b"], "toolsOverride": {"find": {}}}));
        assert_eq!(
            fields(&MCPToolConfig::check(&spec)),
            ["toolsFilter[0]", "toolsFilter[1]", "toolsOverride[find]"]
        );
    }

    #[test]
    fn two_tools_with_one_name_are_a_warning() {
        let warnings = |change| {
            let spec = sample(json!({"toolsOverride": {"find": {"name": "x"}, "fetch": change}}));
            assert_eq!(MCPToolConfig::check(&spec), []);
            MCPToolConfig::further_conditions(&spec)
        };
        let message = "toolsOverride[find].name: \"x\" is the name of fetch as well, and only one is offered: \
                       give each another name";
        let expected = Condition::new(ToolNameWarning::DuplicateToolName, message);
        assert_eq!(warnings(json!({"name": "x"})), [expected]);
        assert_eq!(warnings(json!({"name": "y"})), []);
    }

    #[test]
    fn a_proxy_gets_no_annotations() {
        let spec = sample(json!({"toolsOverride": {
            "fetch": {"name": "load", "annotations": {"readOnlyHint": true}},
            "find": {"annotations": {"title": "Find"}},
        }}));
        let load = ToolOverride { name: "load".into(), description: String::new() };
        assert_eq!(tools_override(&spec), [("fetch".to_owned(), load)].into());
    }
}
