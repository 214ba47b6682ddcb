//! What would be written, told by logs and metrics, while another operator is in charge.

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

use crate::{
    driver::Failure,
    plan::{Found, Plan, Verdict},
};

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

/// What was found out of each object, and told.
pub(super) struct Observer {
    seen: Mutex<HashMap<Arc<Target>, Seen>>,
    objects: Family<Object, Count>,
    writes: Family<Write, Count>,
    rollouts: Count,
}

/// What was found out of one object.
#[derive(PartialEq)]
struct Seen {
    verdict: &'static str,
    writes: Vec<Write>,
    rollouts: i64,
    /// Of all that is told, so that the same is told once.
    told: u64,
}

/// The verdict on an object that cannot be planned for.
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

    /// Takes in what would be done for an object, and tells it if it is news.
    pub(super) fn take_in(&self, target: &Arc<Target>, result: &Result<Plan, Failure>) {
        let text = match result {
            Ok(plan) => text(plan),
            Err(Failure::Write(stale)) if stale.is_stale() => return,
            Err(failure) => failure.to_string(),
        };
        let now = match result {
            Ok(Plan { found: Found::Nothing, .. }) => None,
            Ok(plan) => Some(Seen::of(plan, &text)),
            Err(_) => Some(Seen { verdict: UNKNOWN, writes: Vec::new(), rollouts: 0, told: hash(&text) }),
        };
        let verdict = now.as_ref().map_or("gone", |now| now.verdict);
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
            warn!(kind = kind.kind, %namespace, %name, error = text, "cannot be planned for");
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
            told: hash(text),
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// All that would be done, in one line.
fn text(plan: &Plan) -> String {
    let problem = match &plan.found {
        Found::Unreadable(error) => Some(error),
        _ => plan.problem.as_ref(),
    };
    let writes = plan.writes.iter().map(|planned| {
        let changes: Vec<String> = planned.changes.iter().map(ToString::to_string).collect();
        if changes.is_empty() { planned.to_string() } else { format!("{planned}: {}", changes.join(", ")) }
    });
    problem.cloned().into_iter().chain(writes).collect::<Vec<_>>().join("; ")
}
