//! What is wrong with a VirtualMCPServer by itself, beyond what the API server has refused.

use std::collections::{BTreeMap, HashSet};

use skep_api::{
    kinds::{BackendAuth, BackendAuthType, VirtualMCPServerSpec},
    vmcp::{Aggregation, ConflictResolution},
};
use skep_config::env;

use super::{backends::Member, inputs::Inputs, startup};
use crate::parts;

/// The first thing that is wrong. Each message begins with the field.
pub(super) fn check(inputs: &Inputs) -> Result<(), String> {
    let spec = inputs.spec();
    check_ways(spec)?;
    let config = inputs.config();
    if let Some(aggregation) = &config.aggregation {
        check_aggregation(aggregation)?;
    }
    let mut names = HashSet::new();
    for tool in &config.composite_tools {
        let at = format!("config.compositeTools[{:?}]", tool.name);
        if !names.insert(&tool.name) {
            return Err(format!("{at}: it is there twice: rename one of them"));
        }
        parts::workflow::check_as_part(tool).map_err(|error| format!("{at}.{error}"))?;
    }
    let service = config.optimizer.as_ref().map(|optimizer| optimizer.embedding_service.as_deref());
    if spec.embedding_server_ref.is_none() && matches!(service, Some(None | Some(""))) {
        return Err("config.optimizer.embeddingService: set it, or embeddingServerRef".into());
    }
    parts::header_forward::check_passthrough(&spec.passthrough_headers)?;
    parts::header_forward::check_passthrough(&config.passthrough_headers)
        .map_err(|error| format!("config.{error}"))?;
    startup::check(spec, &config)?;
    check_variables(inputs)
}

fn check_ways(spec: &VirtualMCPServerSpec) -> Result<(), String> {
    let Some(auth) = &spec.outgoing_auth else { return Ok(()) };
    let default = auth.default.iter().map(|way| ("outgoingAuth.default".to_owned(), way));
    let backends = auth.backends.iter().map(|(name, way)| (format!("outgoingAuth.backends[{name:?}]"), way));
    let named = |way: &BackendAuth| {
        way.external_auth_config_ref.as_ref().is_some_and(|reference| !reference.name.is_empty())
    };
    let unnamed = |(_, way): &(String, &BackendAuth)| {
        way.type_ == BackendAuthType::ExternalAuthConfigRef && !named(way)
    };
    match default.chain(backends).find(unnamed) {
        Some((field, _)) => {
            Err(format!("{field}.externalAuthConfigRef: set it, as type is externalAuthConfigRef"))
        }
        None => Ok(()),
    }
}

fn check_aggregation(aggregation: &Aggregation) -> Result<(), String> {
    let order =
        aggregation.conflict_resolution_config.as_ref().map(|config| config.priority_order.as_slice());
    match aggregation.conflict_resolution.unwrap_or_default() {
        ConflictResolution::Priority if order.unwrap_or_default().is_empty() => {
            return Err("config.aggregation.conflictResolutionConfig.priorityOrder: name backends, as \
                        conflictResolution is priority"
                .into());
        }
        ConflictResolution::Manual if aggregation.tools.is_empty() => {
            return Err(
                "config.aggregation.tools: say what tools are called, as conflictResolution is manual".into(),
            );
        }
        _ => {}
    }
    let mut workloads = HashSet::new();
    for (index, tools) in aggregation.tools.iter().enumerate() {
        let at = format!("config.aggregation.tools[{index}]");
        if tools.workload.is_empty() {
            return Err(format!("{at}.workload: name a backend"));
        }
        if !workloads.insert(&tools.workload) {
            return Err(format!("{at}.workload: {:?} is there twice: put both into one", tools.workload));
        }
        if tools.tool_config_ref.as_ref().is_some_and(|reference| reference.name.is_empty()) {
            return Err(format!("{at}.toolConfigRef.name: name an MCPToolConfig"));
        }
    }
    Ok(())
}

/// Names that differ may become parts of variables that do not: one would then get the other's secret.
fn check_variables(inputs: &Inputs) -> Result<(), String> {
    let auths = inputs.external_auths.keys().map(|name| (env::header_injection_value(name), name.as_str()));
    let entries = inputs.members.iter().filter_map(Member::entry);
    let entries = entries.map(|(name, _)| (env::entry_headers(name), name));
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (variable, name) in auths.chain(entries) {
        if let Some(other) = seen.insert(variable.clone(), name) {
            return Err(format!(
                "{other} and {name} would share the variable {variable}: rename one of the two"
            ));
        }
    }
    Ok(())
}
