//! Reports what would be written, by logs and metrics, while another operator is in charge.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicI64},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use skep_world::Target;
use tracing::{debug, info, warn};

use crate::reconcile::{Plan, ReconcileError, Subject, Verdict};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Object {
    kind: &'static str,
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    kind: &'static str,
    verb: &'static str,
}

type Count = Gauge<i64, AtomicI64>;

/// The last plan of each object.
pub(super) struct Observer {
    seen: Mutex<HashMap<Arc<Target>, Seen>>,
    objects: Family<Object, Count>,
    writes: Family<Write, Count>,
    rollouts: Count,
}

/// The last plan of one object, in numbers.
#[derive(PartialEq)]
struct Seen {
    verdict: &'static str,
    writes: Vec<Write>,
    rollouts: i64,
    /// The hash of the logged text, so that the same plan is logged once.
    text: u64,
}

/// The verdict on an object without a plan.
const UNKNOWN: &str = "unknown";

impl Observer {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let (objects, writes, rollouts) = (Family::default(), Family::default(), Count::default());
        registry.register(
            "observed_objects",
            "Objects by kind and by what would be done for them",
            objects.clone(),
        );
        registry.register(
            "planned_writes",
            "Writes that would be made, by kind of what is written",
            writes.clone(),
        );
        registry.register("planned_rollouts", "Workloads whose pods would be replaced", rollouts.clone());
        Self { seen: Mutex::default(), objects, writes, rollouts }
    }

    /// Records the plan for an object, and logs it if it changed.
    pub(super) fn record(&self, target: &Arc<Target>, result: &Result<Plan, ReconcileError>) {
        let text = match result {
            Ok(plan) => text(plan),
            Err(ReconcileError::Write(stale)) if stale.is_stale() => return,
            Err(error) => error.to_string(),
        };
        let now = match result {
            Ok(Plan { subject: Subject::Absent, .. }) => None,
            Ok(plan) => Some(Seen::of(plan, &text)),
            Err(_) => Some(Seen { verdict: UNKNOWN, writes: Vec::new(), rollouts: 0, text: hash(&text) }),
        };
        let verdict = now.as_ref().map_or("deleted", |now| now.verdict);
        let before = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.get(target) == now.as_ref() {
                return;
            }
            now.iter().for_each(|now| self.count(target, now, 1));
            let before = match now {
                Some(now) => seen.insert(target.clone(), now),
                None => seen.remove(target),
            };
            before.iter().for_each(|before| self.count(target, before, -1));
            before
        };
        let Target { kind, namespace, name } = target.as_ref();
        let rolls_pods = result.as_ref().is_ok_and(Plan::rolls_pods);
        if result.is_err() {
            warn!(kind = kind.kind, %namespace, %name, error = text, "cannot plan");
        } else if before.is_none() && verdict == Verdict::Settled.word() {
            debug!(kind = kind.kind, %namespace, %name, verdict, "observed");
        } else {
            info!(kind = kind.kind, %namespace, %name, verdict, rolls_pods, plan = text, "observed");
        }
    }

    fn count(&self, target: &Target, seen: &Seen, by: i64) {
        self.objects.get_or_create(&Object { kind: target.kind.kind, verdict: seen.verdict }).inc_by(by);
        for write in &seen.writes {
            self.writes.get_or_create(write).inc_by(by);
        }
        self.rollouts.inc_by(by * seen.rollouts);
    }
}

impl Seen {
    fn of(plan: &Plan, text: &str) -> Self {
        let writes =
            plan.writes.iter().map(|planned| Write { kind: planned.kind.kind, verb: planned.verb() });
        let rollouts = plan.writes.iter().filter(|planned| planned.rolls_pods()).count();
        Self {
            verdict: plan.verdict().word(),
            writes: writes.collect(),
            rollouts: i64::try_from(rollouts).unwrap_or(i64::MAX),
            text: hash(text),
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The plan in one line.
fn text(plan: &Plan) -> String {
    let problem = match &plan.subject {
        Subject::Unreadable(error) => Some(error),
        _ => plan.problem.as_ref(),
    };
    let writes = plan.writes.iter().map(|planned| {
        let changes: Vec<String> = planned.changes.iter().map(ToString::to_string).collect();
        if changes.is_empty() { planned.to_string() } else { format!("{planned}: {}", changes.join(", ")) }
    });
    problem.cloned().into_iter().chain(writes).collect::<Vec<_>>().join("; ")
}
