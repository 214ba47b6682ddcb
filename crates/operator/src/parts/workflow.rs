//! Composite tools: whether the workflow that one runs can be run.
//!
//! Templates are not parsed here, so what they refer to is found out by the process.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use skep_api::vmcp::{CompositeTool, ErrorAction, Step, StepType};

use super::said;

const MAX_PARALLEL: i64 = 50;
const MAX_ITERATIONS: i64 = 1000;

/// What is wrong with a tool by itself. Each message begins with the field within it.
pub(crate) fn check(tool: &CompositeTool) -> Result<(), String> {
    if tool.name.is_empty() {
        return Err("name: set it: clients call the tool by it".into());
    }
    if said(&tool.description).is_none() {
        return Err("description: set it: models choose the tool by it".into());
    }
    if let Some(parameters) = &tool.parameters
        && !parameters.0.is_empty()
        && parameters.0.get("type").and_then(Value::as_str) != Some("object")
    {
        return Err("parameters.type: it must be object".into());
    }
    if tool.steps.is_empty() {
        return Err("steps: write at least one".into());
    }
    let mut ids = HashSet::new();
    for (index, step) in tool.steps.iter().enumerate() {
        if step.id.is_empty() {
            return Err(format!("steps[{index}].id: set it: other steps refer to it"));
        }
        if !ids.insert(step.id.as_str()) {
            return Err(format!("steps: {:?} is there twice: rename one of them", step.id));
        }
        check_step(step).map_err(|error| format!("steps[{:?}].{error}", step.id))?;
    }
    check_order(&tool.steps)
}

fn check_step(step: &Step) -> Result<(), String> {
    let (tool, message) = (said(&step.tool), said(&step.message));
    match step.type_.unwrap_or_default() {
        StepType::Tool if step.type_.is_none() && tool.is_some() && message.is_some() => {
            return Err("type: set it: it has both a tool and a message".into());
        }
        StepType::Tool => check_tool_name(tool)?,
        StepType::Elicitation if message.is_none() => {
            return Err("message: set it, as type is elicitation".into());
        }
        StepType::Elicitation => {}
        StepType::ForEach => check_loop(step)?,
    }
    if let Some(handling) = &step.on_error
        && handling.action == Some(ErrorAction::Retry)
        && handling.retry_count.unwrap_or_default() < 1
    {
        return Err("onError.retryCount: set it to 1 or more, as action is retry".into());
    }
    Ok(())
}

fn check_tool_name(tool: Option<&str>) -> Result<(), String> {
    let Some(tool) = tool else { return Err("tool: set it, as type is tool".into()) };
    let fits = tool.starts_with(|c: char| c.is_ascii_alphanumeric())
        && tool.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits { Ok(()) } else { Err(format!("tool: {tool:?} cannot be the name of a tool")) }
}

fn check_loop(step: &Step) -> Result<(), String> {
    if said(&step.tool).is_some() || said(&step.message).is_some() {
        return Err("type: forEach has its tool within step: leave out tool and message".into());
    }
    if said(&step.collection).is_none() {
        return Err("collection: set it, as type is forEach".into());
    }
    for (field, value, limit) in [
        ("maxParallel", step.max_parallel, MAX_PARALLEL),
        ("maxIterations", step.max_iterations, MAX_ITERATIONS),
    ] {
        if value.is_some_and(|value| !(0..=limit).contains(&value)) {
            return Err(format!("{field}: it must be from 0 to {limit}"));
        }
    }
    if let Some(name) = said(&step.item_var) {
        let letter = |c: char| c == '_' || c.is_alphabetic();
        if name == "index" || !name.starts_with(letter) || !name.chars().all(|c| letter(c) || c.is_numeric())
        {
            return Err(format!("itemVar: {name:?} cannot be the name of an item"));
        }
    }
    let Some(inner) = &step.step else { return Err("step: set it, as type is forEach".into()) };
    let inner: Step =
        serde_json::from_value(Value::Object(inner.0.clone())).map_err(|error| format!("step: {error}"))?;
    if inner.type_.unwrap_or_default() != StepType::Tool {
        return Err("step.type: it must be tool".into());
    }
    check_tool_name(said(&inner.tool)).map_err(|error| format!("step.{error}"))
}

/// Checks that what steps wait for is there, and that none waits for itself.
fn check_order(steps: &[Step]) -> Result<(), String> {
    let by_id: HashMap<&str, &Step> = steps.iter().map(|step| (step.id.as_str(), step)).collect();
    for step in steps {
        if let Some(other) = step.depends_on.iter().find(|other| !by_id.contains_key(other.as_str())) {
            return Err(format!("steps[{:?}].dependsOn: there is no step {other:?}", step.id));
        }
    }
    // Each round takes away the steps that wait for none of those left.
    let mut left: HashSet<&str> = by_id.keys().copied().collect();
    loop {
        let waits = |id: &&str| by_id[*id].depends_on.iter().any(|other| left.contains(other.as_str()));
        let still: HashSet<&str> = left.iter().copied().filter(waits).collect();
        if still.is_empty() {
            return Ok(());
        }
        if still.len() == left.len() {
            let mut names: Vec<&str> = still.into_iter().collect();
            names.sort_unstable();
            return Err(format!("steps: {} wait for each other", names.join(", ")));
        }
        left = still;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parts::samples::sample;

    fn problem(steps: Value) -> Result<(), String> {
        check(&sample(json!({"name": "both", "description": "d", "steps": steps})))
    }

    #[test]
    fn a_workflow_that_can_be_run_passes() {
        assert_eq!(
            problem(json!([
                {"id": "a", "tool": "one.x", "onError": {"action": "retry", "retryCount": 2}},
                {"id": "b", "type": "elicitation", "message": "go on?", "dependsOn": ["a"]},
                {"id": "c", "type": "forEach", "collection": "{{.steps.a.output}}", "dependsOn": ["a", "b"],
                 "step": {"id": "inner", "tool": "one.y"}},
            ])),
            Ok(())
        );
    }

    #[test]
    fn each_mistake_is_named_with_its_step() {
        for (steps, error) in [
            (json!([]), "steps: "),
            (json!([{"id": "", "tool": "x"}]), "steps[0].id: "),
            (json!([{"id": "a", "tool": "x"}, {"id": "a", "tool": "x"}]), "steps: \"a\" is there twice"),
            (json!([{"id": "a"}]), "steps[\"a\"].tool: "),
            (json!([{"id": "a", "tool": "x", "message": "y"}]), "steps[\"a\"].type: "),
            (json!([{"id": "a", "tool": "x y"}]), "steps[\"a\"].tool: \"x y\""),
            (json!([{"id": "a", "type": "elicitation"}]), "steps[\"a\"].message: "),
            (json!([{"id": "a", "type": "forEach", "collection": "c"}]), "steps[\"a\"].step: "),
            (
                json!([{"id": "a", "type": "forEach", "collection": "c", "maxParallel": 51}]),
                "steps[\"a\"].maxParallel: ",
            ),
            (
                json!([{"id": "a", "tool": "x", "onError": {"action": "retry"}}]),
                "steps[\"a\"].onError.retryCount: ",
            ),
            (json!([{"id": "a", "tool": "x", "dependsOn": ["b"]}]), "steps[\"a\"].dependsOn: "),
            (
                json!([{"id": "a", "tool": "x", "dependsOn": ["b"]}, {"id": "b", "tool": "x", "dependsOn": ["a"]}]),
                "steps: a, b wait for each other",
            ),
        ] {
            let message = problem(steps).unwrap_err();
            assert!(message.starts_with(error), "{message}");
        }
    }
}
