//! The validation of the spec by itself, beyond what the API server rejects.

use std::collections::{BTreeMap, HashSet};

use skep_api::{
    kinds::{BackendAuth, BackendAuthType, VirtualMCPServerSpec},
    vmcp::{Aggregation, Config, WorkloadTools},
};
use skep_config::{FieldError, FieldPath, env};

use super::{backends::Member, inputs::Inputs, startup};

/// Everything that is wrong. `file` is the configuration file without callers, if it can be built.
pub(super) fn check(inputs: &Inputs, file: Option<&Config>) -> Vec<FieldError> {
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
    errors.extend(file.into_iter().flat_map(|file| startup::errors_of_the_spec(spec, file)));
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

/// A reference by no name. All else is checked as part of the file.
fn check_aggregation(aggregation: &Aggregation) -> Vec<FieldError> {
    let is_nameless = |tools: &WorkloadTools| {
        tools.tool_config_ref.as_ref().is_some_and(|reference| reference.name.is_empty())
    };
    let nameless = aggregation.tools.iter().enumerate().filter(|(_, tools)| is_nameless(tools));
    let field = |index| FieldPath::from("config.aggregation.tools").index(index).join("toolConfigRef.name");
    nameless.map(|(index, _)| FieldError::new(field(index), "must name an MCPToolConfig")).collect()
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
