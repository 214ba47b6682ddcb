//! The validation of the spec by itself, beyond what the API server rejects.

use std::collections::{BTreeMap, HashSet};

use skep_api::{
    kinds::{BackendAuth, BackendAuthType, VirtualMCPServerSpec},
    vmcp::{Aggregation, ConflictResolution},
};
use skep_config::{FieldError, FieldPath, env};

use super::{backends::Member, inputs::Inputs, startup};
use crate::config_refs;

/// Everything that is wrong.
pub(super) fn check(inputs: &Inputs) -> Vec<FieldError> {
    let spec = inputs.spec();
    let config = inputs.config();
    let mut errors = check_outgoing_auth(spec);
    errors.extend(config.aggregation.iter().flat_map(check_aggregation));
    let mut names = HashSet::new();
    for tool in &config.composite_tools {
        let field = FieldPath::from("config.compositeTools").key(&tool.name);
        if !names.insert(&tool.name) {
            errors.push(FieldError::new(field.clone(), "duplicate name: rename one of them"));
        }
        let workflow = skep_workflow::check_as_part(tool).into_iter();
        let workflow = workflow.chain(skep_workflow::check_permissions(tool, &config));
        errors.extend(workflow.map(|error| error.within(field.clone())));
    }
    errors.extend(config_refs::header_forward::check_passthrough(&spec.passthrough_headers));
    let headers = config_refs::header_forward::check_passthrough(&config.passthrough_headers).into_iter();
    errors.extend(headers.map(|error| error.within("config")));
    errors.extend(startup::errors(&config));
    errors.extend(check_variables(inputs));
    errors
}

fn check_outgoing_auth(spec: &VirtualMCPServerSpec) -> Vec<FieldError> {
    let Some(auth) = &spec.outgoing_auth else { return Vec::new() };
    let default = auth.default.iter().map(|auth| (FieldPath::from("outgoingAuth.default"), auth));
    let backends =
        auth.backends.iter().map(|(name, auth)| (FieldPath::from("outgoingAuth.backends").key(name), auth));
    let is_named = |auth: &BackendAuth| {
        auth.external_auth_config_ref.as_ref().is_some_and(|reference| !reference.name.is_empty())
    };
    let unnamed = default
        .chain(backends)
        .filter(|(_, auth)| auth.type_ == BackendAuthType::ExternalAuthConfigRef && !is_named(auth));
    let message = "must be set, because type is externalAuthConfigRef";
    unnamed.map(|(field, _)| FieldError::new(field.join("externalAuthConfigRef"), message)).collect()
}

fn check_aggregation(aggregation: &Aggregation) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let order =
        aggregation.conflict_resolution_config.as_ref().map(|config| config.priority_order.as_slice());
    match aggregation.conflict_resolution.unwrap_or_default() {
        ConflictResolution::Priority if order.unwrap_or_default().is_empty() => errors.push(FieldError::new(
            "conflictResolutionConfig.priorityOrder",
            "must list backends, because conflictResolution is priority",
        )),
        ConflictResolution::Manual if aggregation.tools.is_empty() => {
            let message = "must name the tools, because conflictResolution is manual";
            errors.push(FieldError::new("tools", message));
        }
        _ => {}
    }
    let mut workloads = HashSet::new();
    for (index, tools) in aggregation.tools.iter().enumerate() {
        let at = |field: &'static str| FieldPath::from("tools").index(index).join(field);
        if tools.workload.is_empty() {
            errors.push(FieldError::new(at("workload"), "must name a backend"));
        } else if !workloads.insert(&tools.workload) {
            let message = format!("duplicate entry for {:?}: merge the two", tools.workload);
            errors.push(FieldError::new(at("workload"), message));
        }
        if tools.tool_config_ref.as_ref().is_some_and(|reference| reference.name.is_empty()) {
            errors.push(FieldError::new(at("toolConfigRef.name"), "must name an MCPToolConfig"));
        }
    }
    errors.into_iter().map(|error| error.within("config.aggregation")).collect()
}

/// Different names can become parts of the same variable: one object would then get the other's secret.
fn check_variables(inputs: &Inputs) -> Vec<FieldError> {
    let auths = inputs.external_auths.keys().map(|name| (env::header_injection_value(name), name.as_str()));
    let entries = inputs.members.iter().filter_map(Member::entry);
    let entries = entries.map(|(name, _)| (env::entry_headers(name), name));
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut errors = Vec::new();
    for (variable, name) in auths.chain(entries) {
        if let Some(other) = seen.insert(variable.clone(), name) {
            let message = format!(
                "{other} and {name} would share the environment variable {variable}: rename one of them"
            );
            errors.push(FieldError::new("", message));
        }
    }
    errors
}
