//! Plans as plain text.

use skep_converge::{Change, Planned as Write};
use skep_operator::{
    reconcile::{Plan, Verdict},
    run::schemas::{INSTALL_CRDS, described},
};

use super::{Lacking, Planned, json::problem};

/// How many differences of a status are shown. The JSON has all.
const OF_STATUS: usize = 6;

/// The plans, with a summary.
pub(super) fn text(plans: &[Planned], lacking: &Lacking) -> String {
    let mut lines = missing(lacking);
    for (target, plan) in plans {
        lines.push(format!("{}/{} {}: {}", target.namespace, target.kind.kind, target.name, verdict(plan)));
        for planned in &plan.writes {
            lines.extend(write(planned));
        }
        for planned in &plan.held {
            lines.push(format!("  wait {} {}: its pods would be replaced", planned.kind.kind, planned.name));
            lines.extend(planned.changes.iter().map(|change| format!("      {change}")));
        }
        // The event of a takeover would give a reason for a change that does not happen.
        if plan.verdict() != Verdict::TakeOver {
            lines.extend(plan.events.iter().map(|event| format!("  event {}: {}", event.reason, event.note)));
        }
    }
    lines.push(summary(plans));
    lines.join("\n") + "\n"
}

/// What the CRDs lack, and how to install it.
fn missing(Lacking { fields, kinds }: &Lacking) -> Vec<String> {
    let mut lines = Vec::new();
    if !kinds.is_empty() {
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.kind).collect();
        lines.push("The cluster does not serve these kinds, of which it thus has no objects:".to_owned());
        lines.push(format!("  {}", kinds.join(", ")));
    }
    if !fields.is_empty() {
        lines.push("The CRDs of the cluster lack status fields, which the operator leaves out:".to_owned());
        lines.extend(described(fields).into_iter().map(|fields| format!("  {fields}")));
    }
    if !lines.is_empty() {
        lines.push(format!("  To have them: {INSTALL_CRDS}"));
    }
    lines
}

fn verdict(plan: &Plan) -> String {
    let pods = if plan.rolls_pods() { "its pods are replaced" } else { "no pod is replaced" };
    match plan.verdict() {
        Verdict::Settled => "nothing to do".into(),
        Verdict::Waiting => "a change waits for the next rollout; no pod is replaced".into(),
        Verdict::Status => "status and metadata only".into(),
        Verdict::TakeOver => format!("taken over; {pods}"),
        Verdict::Change => format!("changed; {pods}"),
        Verdict::Blocked => format!("blocked: {}", problem(plan).unwrap_or_default()),
        Verdict::Unreadable => format!("cannot be read: {}", problem(plan).unwrap_or_default()),
    }
}

fn write(planned: &Write) -> Vec<String> {
    let pods = if planned.rolls_pods() { "; its pods are replaced" } else { "" };
    let shown = if planned.write == skep_converge::Write::Report { OF_STATUS } else { usize::MAX };
    let changes = planned.changes.iter().take(shown).map(|change: &Change| format!("      {change}"));
    let mut lines = vec![format!("  {planned}{pods}")];
    lines.extend(changes);
    if planned.changes.len() > shown {
        lines.push(format!("      and {} more", planned.changes.len() - shown));
    }
    lines
}

fn summary(plans: &[Planned]) -> String {
    let count = |is: &dyn Fn(&Plan) -> bool| plans.iter().filter(|(_, plan)| is(plan)).count();
    let parts = [
        (Verdict::Settled, "with nothing to do"),
        (Verdict::Waiting, "waiting for a rollout"),
        (Verdict::Status, "with another status"),
        (Verdict::TakeOver, "taken over"),
        (Verdict::Change, "changed"),
        (Verdict::Blocked, "blocked"),
        (Verdict::Unreadable, "that cannot be read"),
    ];
    let parts = parts.map(|(verdict, words)| (count(&|plan| plan.verdict() == verdict), words));
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, words)| format!("{number} {words}"))
        .collect();
    let rolled = match count(&Plan::rolls_pods) {
        0 => "No pod is replaced.".to_owned(),
        1 => "The pods of 1 object are replaced.".to_owned(),
        number => format!("The pods of {number} objects are replaced."),
    };
    match plans.len() {
        0 => "There are no objects to plan.".into(),
        1 => format!("1 object, {}. {rolled} Nothing was written.", parts.join(", ")),
        all => format!("{all} objects: {}. {rolled} Nothing was written.", parts.join(", ")),
    }
}
