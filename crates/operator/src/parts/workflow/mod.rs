//! Composite tools: whether a workflow can be run.
//!
//! Everything is checked that can be known without the backends: the steps and their order, the templates and what
//! they refer to, the schemas and the output. All problems are found at once, and each names the step and the field.

mod depends;
mod output;
mod problem;
mod schema;
mod steps;
#[cfg(test)]
mod tests;
mod uses;

use skep_api::vmcp::CompositeTool;

pub(crate) use problem::{Cause, Problem};
use problem::{Problems, duration};

/// How many steps a workflow may have.
const MOST_STEPS: usize = 100;

/// What is wrong with a composite tool by itself.
pub(crate) fn check(tool: &CompositeTool) -> Result<(), Vec<Problem>> {
    let mut problems = Problems::default();
    if tool.name.trim().is_empty() {
        problems.add(Cause::Workflow, "name", "name the tool");
    }
    if tool.description.as_deref().unwrap_or_default().trim().is_empty() {
        problems.add(Cause::Workflow, "description", "say what the tool does: models choose it by that");
    }
    duration("timeout", tool.timeout.as_ref(), None, &mut problems);
    parameters(tool, &mut problems);
    match tool.steps.len() {
        0 => problems.add(Cause::Workflow, "steps", "a workflow needs at least one step"),
        many if many > MOST_STEPS => {
            let message = format!("there are {many} steps, and {MOST_STEPS} are the most that can be run");
            problems.add(Cause::Workflow, "steps", message);
        }
        _ => {
            let order = depends::order(&tool.steps, &mut problems);
            let mut uses = uses::Uses::new(tool, &order);
            steps::check(&tool.steps, &mut uses, &mut problems);
            if let Some(output) = &tool.output {
                output::check(output, &mut uses, &mut problems);
            }
            uses.check_defaults(&mut problems);
        }
    }
    problems.into_result()
}

/// The same in one sentence, for whoever has a tool among other things.
pub(crate) fn check_as_part(tool: &CompositeTool) -> Result<(), String> {
    check(tool).map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Clients must send an object, so that is what the schema has to describe.
fn parameters(tool: &CompositeTool, problems: &mut Problems) {
    let Some(parameters) = &tool.parameters else { return };
    match parameters.0.get("type").map(|type_| type_.as_str().unwrap_or_default()) {
        Some("object") => {}
        Some(_) => problems.add(Cause::Schema, "parameters.type", "tools take an object: write object here"),
        None => problems.add(Cause::Schema, "parameters.type", "it is missing: write object here"),
    }
    schema::check("parameters", &parameters.0, problems);
}
