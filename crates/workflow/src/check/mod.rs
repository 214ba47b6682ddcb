//! Composite tools: whether a workflow can run.
//!
//! Everything is checked that does not depend on the backends: the steps and their order, the templates and what they
//! refer to, the schemas and the output. All mistakes are reported at once.

mod depends;
mod error;
mod output;
mod schema;
mod steps;
#[cfg(test)]
mod tests;
mod uses;

use skep_api::vmcp::{CompositeTool, Config, RunAs};
use skep_config::{FieldError, FieldPath};

pub use error::{Cause, WorkflowError};
use error::{Errors, duration};

/// How many steps a workflow may have.
const MAX_STEPS: usize = 100;

/// Every mistake in a composite tool by itself. Fields are below the tool.
pub fn check(tool: &CompositeTool) -> Vec<WorkflowError> {
    checked(tool).into_vec()
}

/// What is doubtful in the composite tools of a virtual server's configuration, which run all the same.
pub fn warnings(config: &Config) -> Vec<FieldError> {
    let of_tool = |(index, tool): (usize, &CompositeTool)| {
        let field = FieldPath::from("compositeTools").index(index);
        checked(tool).into_warnings().into_iter().map(move |warning| warning.within(field.clone()))
    };
    config.composite_tools.iter().enumerate().flat_map(of_tool).collect()
}

fn checked(tool: &CompositeTool) -> Errors {
    let mut errors = Errors::default();
    if tool.name.trim().is_empty() {
        errors.add(Cause::Workflow, "name", "is empty: name the tool");
    }
    if tool.description.as_deref().unwrap_or_default().trim().is_empty() {
        let message = "is empty: describe what the tool does, as models choose tools by their description";
        errors.add(Cause::Workflow, "description", message);
    }
    duration("timeout", tool.timeout.as_ref(), None, &mut errors);
    check_parameters(tool, &mut errors);
    match tool.steps.len() {
        0 => errors.add(Cause::Workflow, "steps", "is empty: a workflow needs at least one step"),
        count if count > MAX_STEPS => {
            let message = format!("has {count} steps, and the maximum is {MAX_STEPS}");
            errors.add(Cause::Workflow, "steps", message);
        }
        _ => {
            let order = depends::order(&tool.steps, &mut errors);
            let mut uses = uses::Uses::new(tool, &order);
            steps::check(&tool.steps, &mut uses, &mut errors);
            if let Some(output) = &tool.output {
                output::check(output, &mut uses, &mut errors);
            }
            uses.check_defaults(&mut errors);
        }
    }
    errors
}

/// The same for an object of which the tool is one part.
pub fn check_as_part(tool: &CompositeTool) -> Vec<FieldError> {
    check(tool).into_iter().map(|error| error.error).collect()
}

/// The mistakes in all composite tools of a virtual server's configuration.
pub fn check_tools(config: &Config) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, tool) in config.composite_tools.iter().enumerate() {
        let field = FieldPath::from("compositeTools").index(index);
        let mistakes = check_as_part(tool).into_iter().chain(check_permissions(tool, config));
        errors.extend(mistakes.map(|error| error.within(field.clone())));
        if config.composite_tools[..index].iter().any(|other| other.name == tool.name) {
            let message = format!("duplicate of {:?}: rename one of them", tool.name);
            errors.push(FieldError::new(field.join("name"), message));
        }
    }
    errors
}

/// What the configuration of a virtual server does not let a composite tool have.
pub fn check_permissions(tool: &CompositeTool, config: &Config) -> Option<FieldError> {
    let is_allowed = tool.run_as != Some(RunAs::Workflow) || config.allow_run_as_workflow == Some(true);
    let message =
        "workflow is not allowed: set allowRunAsWorkflow in the configuration of the virtual server";
    (!is_allowed).then(|| FieldError::new("runAs", message))
}

/// Clients send arguments as an object, so the schema must describe one.
fn check_parameters(tool: &CompositeTool, errors: &mut Errors) {
    let Some(parameters) = &tool.parameters else { return };
    match parameters.0.get("type").map(|type_| type_.as_str().unwrap_or_default()) {
        Some("object") => {}
        Some(_) => errors.add(Cause::Schema, "parameters.type", "must be object"),
        None => errors.add(Cause::Schema, "parameters.type", "is missing: set it to object"),
    }
    schema::check("parameters", &parameters.0, errors);
}
