//! Plans as JSON.

use serde_json::{Value, json};
use skep_api::events::Severity;
use skep_converge::{Change, Planned as Write};
use skep_operator::reconcile::{Event, Plan, Subject, UndeclaredField, Verdict};

use super::{Lacking, Planned};

/// The plans, as one document.
pub(super) fn json(plans: &[Planned], lacking: &Lacking) -> anyhow::Result<String> {
    let objects: Vec<Value> = plans.iter().map(object).collect();
    let count = |verdict: Verdict| plans.iter().filter(|(_, plan)| plan.verdict() == verdict).count();
    let summary: Value = [
        Verdict::Settled,
        Verdict::Waiting,
        Verdict::Status,
        Verdict::TakeOver,
        Verdict::Change,
        Verdict::Blocked,
        Verdict::Unreadable,
    ]
    .into_iter()
    .map(|verdict| (verdict.word().to_owned(), json!(count(verdict))))
    .chain([("rollsPods".to_owned(), json!(plans.iter().filter(|(_, plan)| plan.rolls_pods()).count()))])
    .collect();
    let fields = |fields: &[UndeclaredField]| fields.iter().map(ToString::to_string).collect::<Vec<_>>();
    let undeclared: Value =
        lacking.fields.iter().map(|(kind, of_kind)| (kind.kind.to_owned(), json!(fields(of_kind)))).collect();
    let unserved: Vec<&str> = lacking.kinds.iter().map(|kind| kind.kind).collect();
    let document = json!({
        "objects": objects, "summary": summary, "undeclaredStatusFields": undeclared, "unservedKinds": unserved,
    });
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn object((target, plan): &Planned) -> Value {
    json!({
        "kind": target.kind.kind,
        "namespace": target.namespace,
        "name": target.name,
        "verdict": plan.verdict().word(),
        "rollsPods": plan.rolls_pods(),
        "problem": problem(plan),
        "held": plan.held.iter().map(write).collect::<Vec<_>>(),
        "writes": plan.writes.iter().map(write).collect::<Vec<_>>(),
        "events": plan.events.iter().map(event).collect::<Vec<_>>(),
    })
}

fn write(planned: &Write) -> Value {
    json!({
        "verb": planned.verb(),
        "kind": planned.kind.kind,
        "name": planned.name,
        "from": planned.from,
        "rollsPods": planned.rolls_pods(),
        "changes": planned.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn change(change: &Change) -> Value {
    json!({"path": change.path, "before": change.before, "after": change.after})
}

fn event(event: &Event) -> Value {
    let severity = match event.severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    json!({"type": severity, "reason": event.reason, "note": event.note})
}

/// Why an object cannot be reconciled.
pub(super) fn problem(plan: &Plan) -> Option<&str> {
    match &plan.subject {
        Subject::Unreadable(error) => Some(error),
        _ => plan.problem.as_deref(),
    }
}
