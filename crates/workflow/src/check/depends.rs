//! The order of steps.

use std::collections::{HashMap, HashSet};

use skep_api::vmcp::Step;
use skep_config::FieldPath;

use super::error::{Cause, Errors, quoted};

/// For each step, by its index, the ids of all steps that finish before it starts.
pub(super) type Order<'a> = Vec<HashSet<&'a str>>;

/// The field of a step.
pub(super) fn field(index: usize) -> FieldPath {
    FieldPath::from("steps").index(index)
}

/// Checks ids and dependencies, and puts the steps in order.
pub(super) fn order<'a>(steps: &'a [Step], errors: &mut Errors) -> Order<'a> {
    let mut by_id = HashMap::new();
    for (index, step) in steps.iter().enumerate() {
        if step.id.is_empty() {
            errors.add(Cause::Workflow, field(index).join("id"), "is empty: give the step an id");
        } else if by_id.contains_key(step.id.as_str()) {
            let message = format!("duplicate of {}: rename one of them", quoted(&step.id));
            errors.add(Cause::Workflow, field(index).join("id"), message);
        } else {
            by_id.insert(step.id.as_str(), index);
        }
    }
    for (index, step) in steps.iter().enumerate() {
        for (item, id) in
            step.depends_on.iter().enumerate().filter(|(_, id)| !by_id.contains_key(id.as_str()))
        {
            let message = format!("there is no step {}", quoted(id));
            errors.add(Cause::Workflow, field(index).join("dependsOn").index(item), message);
        }
    }
    if let Some(cycle) = cycle(steps, &by_id) {
        let names: Vec<_> = cycle.iter().map(|index| steps[*index].id.as_str()).collect();
        let message = format!("{} is a cycle, so none of these steps can ever start", names.join(" → "));
        errors.add(Cause::Cycle, field(cycle[0]).join("dependsOn"), message);
    }
    steps.iter().map(|step| before(step, steps, &by_id)).collect()
}

/// All steps that finish before this one, direct and indirect dependencies.
fn before<'a>(step: &'a Step, steps: &'a [Step], by_id: &HashMap<&'a str, usize>) -> HashSet<&'a str> {
    let mut ids = HashSet::new();
    let mut waiting: Vec<&'a str> = step.depends_on.iter().map(String::as_str).collect();
    while let Some(id) = waiting.pop() {
        if ids.insert(id)
            && let Some(index) = by_id.get(id)
        {
            waiting.extend(steps[*index].depends_on.iter().map(String::as_str));
        }
    }
    ids
}

/// The steps of the first cycle. The last one is the first one again.
fn cycle(steps: &[Step], by_id: &HashMap<&str, usize>) -> Option<Vec<usize>> {
    let mut done = vec![false; steps.len()];
    for start in 0..steps.len() {
        // The path from the start to the current step, each with the dependencies that are still to be followed.
        let mut path: Vec<(usize, std::slice::Iter<'_, String>)> =
            vec![(start, steps[start].depends_on.iter())];
        while let Some((here, rest)) = path.last_mut() {
            let here = *here;
            match rest.next().map(|id| by_id.get(id.as_str()).copied()) {
                Some(Some(next)) => {
                    if let Some(position) = path.iter().position(|(index, _)| *index == next) {
                        let mut cycle: Vec<usize> =
                            path[position..].iter().map(|(index, _)| *index).collect();
                        cycle.push(next);
                        return Some(cycle);
                    }
                    if !done[next] {
                        path.push((next, steps[next].depends_on.iter()));
                    }
                }
                Some(None) => {}
                None => {
                    done[here] = true;
                    path.pop();
                }
            }
        }
    }
    None
}
