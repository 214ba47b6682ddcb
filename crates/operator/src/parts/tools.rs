//! MCPToolConfig: which tools a proxy offers, and what it tells clients about them.

use std::collections::BTreeMap;

use skep_api::kinds::MCPToolConfigSpec;
use skep_config::run_config::ToolOverride;

use super::{said, text};

/// What is wrong with the object by itself.
pub(crate) fn check(spec: &MCPToolConfigSpec) -> Result<(), String> {
    // Proxies also take the filter as one text with commas.
    if let Some(tool) =
        spec.tools_filter.iter().find(|tool| tool.is_empty() || tool.contains([',', '\n', '\r']))
    {
        return Err(format!(
            "toolsFilter: {tool:?} cannot be the name of a tool: leave out commas and line breaks"
        ));
    }
    let says_nothing = |change: &skep_api::tools::ToolOverride| {
        said(&change.name).is_none() && said(&change.description).is_none() && change.annotations.is_none()
    };
    match spec.tools_override.iter().find(|(_, change)| says_nothing(change)) {
        Some((tool, _)) => {
            Err(format!("toolsOverride[{tool:?}]: it changes nothing: set name, description or annotations"))
        }
        None => Ok(()),
    }
}

/// The tools to offer. Empty means all.
pub(crate) fn tools_filter(spec: &MCPToolConfigSpec) -> Vec<String> {
    spec.tools_filter.clone()
}

/// What clients are told about tools. Annotations have no place in a RunConfig: only a virtual MCP server changes them.
pub(crate) fn tools_override(spec: &MCPToolConfigSpec) -> BTreeMap<String, ToolOverride> {
    let changes = spec.tools_override.iter().map(|(tool, change)| {
        let name = text(&change.name);
        let description = text(&change.description);
        (tool.clone(), ToolOverride { name, description })
    });
    changes.filter(|(_, change)| *change != ToolOverride::default()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parts::samples::sample;

    #[test]
    fn a_filter_holds_names() {
        assert_eq!(check(&sample(json!({"toolsFilter": ["find", "fetch page"]}))), Ok(()));
        for bad in ["", "a,b", "a\nb", "a\r"] {
            let error = check(&sample(json!({"toolsFilter": ["find", bad]}))).unwrap_err();
            assert!(error.starts_with(&format!("toolsFilter: {bad:?} ")), "{error}");
        }
    }

    #[test]
    fn an_override_changes_something() {
        for change in [json!({"name": "n"}), json!({"description": "d"}), json!({"annotations": {}})] {
            assert_eq!(check(&sample(json!({"toolsOverride": {"find": change}}))), Ok(()));
        }
        for nothing in [json!({}), json!({"name": ""})] {
            let error = check(&sample(json!({"toolsOverride": {"find": nothing}}))).unwrap_err();
            assert!(error.starts_with("toolsOverride[\"find\"]: "), "{error}");
        }
    }

    #[test]
    fn annotations_do_not_reach_a_proxy() {
        let spec = sample(json!({"toolsOverride": {
            "fetch": {"name": "load", "annotations": {"readOnlyHint": true}},
            "find": {"annotations": {"title": "Find"}},
        }}));
        let load = ToolOverride { name: "load".into(), description: String::new() };
        assert_eq!(tools_override(&spec), [("fetch".to_owned(), load)].into());
    }
}
