//! Which tools are offered, and as what.

use skep_api::vmcp::{Aggregation, ToolVisibility, WorkloadTools};

use super::{
    conflicts::Candidate,
    rename::{Changes, changed},
};

/// The filters and overrides of all backends.
pub(super) struct ToolRules<'a>(&'a Aggregation);

impl<'a> ToolRules<'a> {
    pub(super) fn new(aggregation: &'a Aggregation) -> Self {
        Self(aggregation)
    }

    /// The tool as its override has it. Filters compare that name.
    pub(super) fn applied(&self, mut tool: Candidate) -> Candidate {
        let rules = self.0.tools.iter().find(|rules| *rules.workload == *tool.origin.backend);
        if let Some(overridden) = rules.and_then(|rules| rules.overrides.get(&*tool.origin.name)) {
            let non_empty = |text: &'a Option<String>| text.as_deref().filter(|text| !text.is_empty());
            let changes = Changes {
                // The table writes the final name.
                name: None,
                description: non_empty(&overridden.description),
                annotations: overridden.annotations.as_ref(),
            };
            tool.json = changed(&tool.json, changes);
            if let Some(name) = non_empty(&overridden.name) {
                tool.name = name.to_owned();
            }
        }
        tool.is_listed = self.is_listed(rules, &tool.name);
        tool
    }

    fn is_listed(&self, rules: Option<&WorkloadTools>, name: &str) -> bool {
        if self.0.exclude_all_tools == Some(true) {
            return false;
        }
        match rules {
            None => self.0.default_tool_visibility != Some(ToolVisibility::Deny),
            Some(rules) if rules.exclude_all == Some(true) => false,
            Some(rules) => rules.filter.is_empty() || rules.filter.iter().any(|shown| shown == name),
        }
    }
}
