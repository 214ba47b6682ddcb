//! Planned writes: what would be written, and with which result.
//!
//! The API server computes the result of an apply, including defaults and webhooks, and stores nothing
//! (`dryRun=All`). Only a takeover cannot be a dry run, because it is two writes and the second builds on the first:
//! fields that the previous program owned and that are no longer desired are removed here, and the API server
//! computes the result for the rest.

use std::fmt;

use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::{
    Applied, Change, Child, Kind, Meta, Mode, Observed, Restores, Result, Writer,
    changes::{changes, hide_secrets},
    client::check_claim,
    fields::{strip, union, without},
    observed::{controller, is_apply, ownable},
    request::{JSON_PATCH, Patch},
    takeover::{StatusTakeover, concerns},
};

/// A planned write.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What would be done.
    pub write: Write,
    /// The kind of the object.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The programs whose fields would be taken over.
    pub from: Vec<String>,
    /// The fields that would change. Values of Secrets are never included.
    pub changes: Vec<Change>,
}

/// What would be done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Write {
    /// It would be created.
    Create,
    /// Own fields would be applied.
    Apply,
    /// Its status would be reported.
    Report,
    /// Its finalizers or annotations would be changed.
    Mark,
    /// It would be deleted.
    Delete,
}

impl Planned {
    pub(crate) fn creation(child: &Child) -> Applied {
        Self::of(child, Write::Create, Vec::new(), Vec::new())
    }

    fn of(child: &Child, write: Write, from: Vec<String>, changes: Vec<Change>) -> Applied {
        let Child { kind, namespace, name, .. } = child;
        let (namespace, name) = (namespace.clone(), name.clone());
        Applied::Planned(Box::new(Self { write, kind: *kind, namespace, name, from, changes }))
    }

    /// Whether running pods would be replaced.
    pub fn rolls_pods(&self) -> bool {
        self.kind.runs_pods() && self.changes.iter().any(|change| change.path.starts_with("spec.template"))
    }

    /// Whether another program's object would be taken over without replacing running pods.
    pub fn only_takes_over(&self) -> bool {
        !self.from.is_empty() && !self.rolls_pods()
    }

    /// What would be done, in one word.
    pub fn verb(&self) -> &'static str {
        match self.write {
            Write::Create => "create",
            Write::Apply if self.changes.is_empty() && !self.from.is_empty() => "take-over",
            Write::Apply => "change",
            Write::Report => "status",
            Write::Mark => "mark",
            Write::Delete => "delete",
        }
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb(), self.kind.kind, self.name)?;
        if !self.from.is_empty() {
            write!(f, " (from {})", self.from.join(", "))?;
        }
        Ok(())
    }
}

impl Writer {
    /// The result that an apply would have.
    pub(crate) async fn planned(
        &self,
        child: &Child,
        live: Option<(&Meta, &Observed)>,
        owner: &str,
    ) -> Result<Applied> {
        let Child { kind, namespace, name, .. } = child;
        let before = match self.live(*kind, namespace, name).await {
            Ok(before) => before,
            Err(error) if error.is_not_found() => return self.planned_creation(child).await,
            Err(error) => return Err(error),
        };
        if live.is_none() {
            let observed = Observed::of(&before, self.manager());
            self.check_owner(child, &observed, owner)?;
            check_claim(child, &observed)?;
        }
        let child = &child.with_live_layout(&before);
        let sent = match self.send(child, None).await {
            Err(error) if error.is_immutable() => {
                self.check_replaceable(child, &before, &error)?;
                return Ok(Planned::creation(child));
            }
            Err(error) if error.is_invalid() => self.send_reclaim(child, error).await?,
            sent => sent?,
        };
        let concern = |entry: &&ManagedFieldsEntry| {
            controller(&before.metadata)
                .is_some_and(|owner| concerns(entry, owner) && entry.subresource.is_none())
        };
        let takeover = live.is_some_and(|(_, observed)| observed.takeover);
        let theirs: Vec<_> =
            if takeover { entries(&before).iter().filter(concern).collect() } else { Vec::new() };
        let taken = theirs.iter().map(|entry| fields(entry)).reduce(union);
        let after = match self.dropped(&before, &sent, &theirs, taken, None) {
            Some(dropped) => self.without_dropped(child, &sent, &dropped).await?,
            None => sent,
        };
        let changes = differences(*kind, &before, &after);
        // An object that an apply does not change is converged, as far as the API server allows.
        if changes.is_empty() && !takeover && self.fields(&before, None) == self.fields(&after, None) {
            return Ok(Applied::Unchanged);
        }
        Ok(Planned::of(child, Write::Apply, managers(&theirs), changes))
    }

    /// The takeover of the child, if it would replace running pods. Nothing is written.
    pub async fn rollout_of_takeover(
        &self,
        child: &Child,
        live: (&Meta, &Observed),
        owner: &str,
    ) -> Result<Option<Planned>> {
        self.check_owner(child, live.1, owner)?;
        if !live.1.takeover {
            return Ok(None);
        }
        let planner = Self::new(self.client().clone(), self.manager(), Mode::Plan, Restores::default());
        let planned = planner.planned(child, Some(live), owner).await?;
        Ok(planned.planned().filter(Planned::rolls_pods))
    }

    async fn planned_creation(&self, child: &Child) -> Result<Applied> {
        match self.send(child, None).await {
            // It may refer to an object of the same plan: a binding can be created as soon as its role exists.
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Planned::creation(child)),
        }
    }

    /// The result that a status update would have.
    pub(crate) async fn planned_status(&self, child: &Child, observed: &Observed) -> Result<Applied> {
        let before = self.live(child.kind, &child.namespace, &child.name).await?;
        let mut after = self.send(child, Some("status")).await?;
        let takeover = StatusTakeover::new(entries(&before), child.body(), child.of_others())
            .filter(|_| observed.status_takeover);
        let theirs = takeover.as_ref().map(|takeover| takeover.from.as_slice()).unwrap_or_default();
        let taken = takeover.as_ref().map(|takeover| takeover.fields.clone());
        if let Some(dropped) = self.dropped(&before, &after, theirs, taken, Some("status")) {
            strip(&mut after.data, &dropped);
        }
        let status = |object: &DynamicObject| json!({"status": timeless(&object.data["status"])});
        let mut changes = changes(&status(&before), &status(&after));
        // Conditions are identified by their types, and keep the order in which they were first reported.
        changes.retain(|change| !change.is_order());
        let same = self.fields(&before, Some("status")) == self.fields(&after, Some("status"));
        if changes.is_empty() && same {
            return Ok(Applied::Unchanged);
        }
        Ok(Planned::of(child, Write::Report, managers(theirs), changes))
    }

    /// The fields that are taken over from the entries `theirs`, that no one else owns, and that are not desired.
    fn dropped(
        &self,
        before: &DynamicObject,
        sent: &DynamicObject,
        theirs: &[&ManagedFieldsEntry],
        taken: Option<Value>,
        subresource: Option<&str>,
    ) -> Option<Value> {
        let all = taken?;
        let others = entries(before).iter().filter(|entry| !theirs.contains(entry)).map(fields);
        let kept = others.chain(self.fields(sent, subresource)).reduce(union);
        without(&all, kept.as_ref())
    }

    /// What the manager owns.
    fn fields(&self, object: &DynamicObject, subresource: Option<&str>) -> Option<Value> {
        let mut entries = entries(object).iter();
        entries.find(|entry| is_apply(entry, self.manager(), subresource)).map(fields)
    }

    /// The object without these fields, as the API server would store it.
    async fn without_dropped(
        &self,
        child: &Child,
        sent: &DynamicObject,
        dropped: &Value,
    ) -> Result<DynamicObject> {
        let mut left = comparable(sent);
        strip(&mut left, dropped);
        // Top-level fields as a whole; null means absent.
        let metadata =
            ["labels", "annotations"].map(|name| (format!("metadata/{name}"), &left["metadata"][name]));
        let parts = sent.data.as_object().into_iter().flatten().filter(|(name, _)| *name != "status");
        let parts = parts.map(|(name, _)| (name.clone(), &left[name]));
        let patch: Vec<Value> = (metadata.into_iter().chain(parts))
            .map(|(part, value)| json!({"op": "add", "path": format!("/{part}"), "value": value}))
            .collect();
        let query = format!("fieldManager={}", self.manager());
        let patch = json!(patch);
        let request = Patch { content: JSON_PATCH, query: &query, body: &patch, subresource: None };
        request.send(self, "take over", child.kind, &child.namespace, &child.name).await
    }
}

fn entries(object: &DynamicObject) -> &[ManagedFieldsEntry] {
    object.metadata.managed_fields.as_deref().unwrap_or_default()
}

fn fields(entry: &ManagedFieldsEntry) -> Value {
    entry.fields_v1.clone().unwrap_or_default().0
}

fn managers(entries: &[&ManagedFieldsEntry]) -> Vec<String> {
    let mut names: Vec<String> = entries.iter().filter_map(|entry| entry.manager.clone()).collect();
    names.dedup();
    names
}

/// The object as a user may write it: without fields set by the API server, and without its status.
fn comparable(object: &DynamicObject) -> Value {
    let mut value = object.data.clone();
    if let Value::Object(map) = &mut value {
        map.remove("status");
    }
    value["metadata"] = json!(ownable(&object.metadata));
    value
}

fn differences(kind: Kind, before: &DynamicObject, after: &DynamicObject) -> Vec<Change> {
    let (mut before, mut after) = (comparable(before), comparable(after));
    if kind == Kind::of::<Secret>() {
        hide_secrets(&mut before, &mut after);
    }
    changes(&before, &after)
}

/// A status without its timestamps, which differ whenever anything else does. One that was never reported is empty.
fn timeless(status: &Value) -> Value {
    match status {
        Value::Null => json!({}),
        Value::Object(map) => {
            let kept = map.iter().filter(|(name, _)| !name.ends_with("Time"));
            kept.map(|(name, value)| (name.clone(), timeless(value))).collect()
        }
        Value::Array(items) => items.iter().map(timeless).collect(),
        other => other.clone(),
    }
}
