//! The order of steps.

use std::collections::{HashMap, HashSet};

use skep_api::vmcp::Step;

use super::problem::{Cause, Problems, quoted};

/// For each step, by its place in the list, the ids of all steps that are done before it starts.
pub(super) type Order<'a> = Vec<HashSet<&'a str>>;

/// How a step is named in messages: by its id, or by its place where that says more.
pub(super) fn place(steps: &[Step], index: usize) -> String {
    let id = &steps[index].id;
    let named = !id.is_empty() && steps.iter().position(|step| step.id == *id) == Some(index);
    if named { format!("steps[{id}]") } else { format!("steps[{index}]") }
}

/// Checks ids and dependencies, and puts the steps in order.
pub(super) fn order<'a>(steps: &'a [Step], problems: &mut Problems) -> Order<'a> {
    let mut by_id = HashMap::new();
    for (index, step) in steps.iter().enumerate() {
        let place = place(steps, index);
        if step.id.is_empty() {
            problems.add(Cause::Workflow, format!("{place}.id"), "give the step an id");
        } else if by_id.contains_key(step.id.as_str()) {
            let message = format!("there is another step {}: give each its own id", quoted(&step.id));
            problems.add(Cause::Workflow, format!("{place}.id"), message);
        } else {
            by_id.insert(step.id.as_str(), index);
        }
    }
    for (index, step) in steps.iter().enumerate() {
        for id in step.depends_on.iter().filter(|id| !by_id.contains_key(id.as_str())) {
            let message = format!("there is no step {}", quoted(id));
            problems.add(Cause::Workflow, format!("{}.dependsOn", place(steps, index)), message);
        }
    }
    if let Some(cycle) = cycle(steps, &by_id) {
        let names: Vec<_> = cycle.iter().map(|index| steps[*index].id.as_str()).collect();
        let message = format!("{} is a cycle, so none of these steps can ever start", names.join(" → "));
        problems.add(Cause::Cycle, format!("{}.dependsOn", place(steps, cycle[0])), message);
    }
    steps.iter().map(|step| before(step, steps, &by_id)).collect()
}

/// All steps that are done before this one, whoever waits for them.
fn before<'a>(step: &'a Step, steps: &'a [Step], by_id: &HashMap<&'a str, usize>) -> HashSet<&'a str> {
    let mut found = HashSet::new();
    let mut waiting: Vec<&'a str> = step.depends_on.iter().map(String::as_str).collect();
    while let Some(id) = waiting.pop() {
        if found.insert(id)
            && let Some(index) = by_id.get(id)
        {
            waiting.extend(steps[*index].depends_on.iter().map(String::as_str));
        }
    }
    found
}

/// The first cycle, as the steps in it, where the first one stands again at the end.
fn cycle(steps: &[Step], by_id: &HashMap<&str, usize>) -> Option<Vec<usize>> {
    let mut done = vec![false; steps.len()];
    for start in 0..steps.len() {
        // The way from the start to where we are, each with the dependencies that are still to be followed.
        let mut way: Vec<(usize, std::slice::Iter<'_, String>)> =
            vec![(start, steps[start].depends_on.iter())];
        while let Some((here, rest)) = way.last_mut() {
            let here = *here;
            match rest.next().map(|id| by_id.get(id.as_str()).copied()) {
                Some(Some(next)) => {
                    if let Some(position) = way.iter().position(|(index, _)| *index == next) {
                        let mut cycle: Vec<usize> = way[position..].iter().map(|(index, _)| *index).collect();
                        cycle.push(next);
                        return Some(cycle);
                    }
                    if !done[next] {
                        way.push((next, steps[next].depends_on.iter()));
                    }
                }
                Some(None) => {}
                None => {
                    done[here] = true;
                    way.pop();
                }
            }
        }
    }
    None
}
