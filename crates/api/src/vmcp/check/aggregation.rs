//! How tools are combined.

use std::collections::HashSet;

use skep_config::{FieldError, FieldPath};

use super::missing;
use crate::vmcp::{Aggregation, ConflictResolution, ToolVisibility};

pub(super) fn errors(aggregation: &Aggregation) -> Vec<FieldError> {
    let mut errors = strategy(aggregation);
    errors.extend(priority_order(aggregation));
    let mut workloads = HashSet::new();
    for (index, tools) in aggregation.tools.iter().enumerate() {
        let field = FieldPath::from("tools").index(index);
        if tools.workload.is_empty() {
            errors.push(missing("workload").within(field.clone()));
        } else if !workloads.insert(&tools.workload) {
            let message = format!("duplicate of {:?}: a backend has one entry", tools.workload);
            errors.push(FieldError::new("workload", message).within(field.clone()));
        }
        for (tool, changes) in &tools.overrides {
            let is_empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
            if is_empty(&changes.name) && is_empty(&changes.description) && changes.annotations.is_none() {
                let message = "changes nothing: set name, description or annotations";
                errors.push(FieldError::new(field.clone().join("overrides").key(tool), message));
            }
        }
    }
    errors
}

fn strategy(aggregation: &Aggregation) -> Vec<FieldError> {
    let config = aggregation.conflict_resolution_config.as_ref();
    let needs_config = || match config {
        None => vec![missing("conflictResolutionConfig")],
        Some(_) => Vec::new(),
    };
    match aggregation.conflict_resolution {
        None => vec![missing("conflictResolution")],
        Some(ConflictResolution::Prefix) => match config {
            Some(config) if config.prefix_format.as_deref().unwrap_or_default().is_empty() => {
                vec![missing("prefixFormat").within("conflictResolutionConfig")]
            }
            _ => needs_config(),
        },
        Some(ConflictResolution::Priority) => match config {
            Some(config) if config.priority_order.is_empty() => {
                vec![missing("priorityOrder").within("conflictResolutionConfig")]
            }
            _ => needs_config(),
        },
        Some(ConflictResolution::Manual) if aggregation.tools.is_empty() => {
            vec![FieldError::new("tools", "is required with conflictResolution manual")]
        }
        Some(ConflictResolution::Manual) => Vec::new(),
    }
}

/// With deny by default, a backend without an entry shows no tools, so it cannot win a conflict.
fn priority_order(aggregation: &Aggregation) -> Option<FieldError> {
    let is_hidden = aggregation.default_tool_visibility == Some(ToolVisibility::Deny)
        && aggregation.conflict_resolution == Some(ConflictResolution::Priority);
    let is_named = |backend: &&String| aggregation.tools.iter().any(|tools| tools.workload == **backend);
    let mut order = aggregation.conflict_resolution_config.iter().flat_map(|config| &config.priority_order);
    let backend = order.find(|backend| is_hidden && !is_named(backend))?;
    let message = format!(
        "{backend:?} has no entry in tools, and defaultToolVisibility deny hides its tools: add an entry, or remove it \
         here"
    );
    Some(FieldError::new("conflictResolutionConfig.priorityOrder", message))
}
