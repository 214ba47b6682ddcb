//! The only place that writes to the API server.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use http::{Method, Request};
use kube::{
    Client,
    core::{DynamicObject, ObjectMeta},
};
use serde_json::{Value, json};

use crate::{
    Child, Contention, Digest, Error, Kind, Meta, Mode, Observed, Planned, Restores, Result,
    guard::{Guard, Part, Reaction, Written, whole},
    observed::{controller, is_apply},
    prune, random, reclaim,
    request::{MERGE_PATCH, Patch, request_error},
    takeover::{StatusTakeover, after_takeover},
};

/// The outcome of applying a child.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// It was up to date. Nothing was sent.
    Unchanged,
    /// It was written; this is its new state.
    Written(Box<DynamicObject>),
    /// It was taken over from another program. Running pods are not replaced: their template is unchanged.
    TakenOver(Box<DynamicObject>),
    /// It would be written (dry run).
    Planned(Box<Planned>),
}

impl Applied {
    /// What would be written, in a dry run.
    pub fn planned(self) -> Option<Planned> {
        match self {
            Self::Planned(planned) => Some(*planned),
            Self::Unchanged | Self::Written(_) | Self::TakenOver(_) => None,
        }
    }
}

/// How many objects whose applied values others change are remembered.
const ACCEPTED: usize = 10_000;

/// The parts of an object that are written separately: all but the status, and the status.
const CHILD: &str = "";
const STATUS: &str = "status";

/// Writes objects as one field manager.
pub struct Writer {
    client: Client,
    manager: Box<str>,
    mode: Mode,
    /// The results of applies that differ from what was applied, for example because a webhook changes it. The same
    /// result for the same desired state then counts as converged: applying again would never end.
    accepted: Mutex<HashMap<String, (Digest, Digest)>>,
    guard: Guard,
}

impl Writer {
    /// A writer that owns fields as `manager`.
    pub fn new(client: Client, manager: &str, mode: Mode, restores: Restores) -> Self {
        let guard = Guard::new(restores);
        Self { client, manager: manager.into(), mode, accepted: Mutex::default(), guard }
    }

    /// The name of the field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// The client, for reads: all writes go through [`Writer::request`].
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The fields of a child of the object with the uid `owner` that another writer changes back.
    pub fn contention(&self, child: &Child, owner: &str) -> Option<Contention> {
        self.guard.contention(Part { child, name: CHILD, owner })
    }

    /// The same of the object's own status.
    pub fn status_contention(&self, child: &Child, owner: &str) -> Option<Contention> {
        self.guard.contention(Part { child, name: STATUS, owner })
    }

    /// Whether it writes or only plans.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Applies the child on behalf of the object with the uid `owner`, unless the live object already matches.
    pub async fn apply(
        &self,
        child: &Child,
        live: Option<(&Meta, &Observed)>,
        owner: &str,
    ) -> Result<Applied> {
        if let Some((_, observed)) = live {
            self.check_owner(child, observed, owner)?;
            if child.random_key().is_some() {
                return Ok(Applied::Unchanged);
            }
            check_claim(child, observed)?;
        }
        if let Some(key) = child.random_key() {
            return self.create_random(child, key).await;
        }
        let is_settled = |child: &Child| {
            live.is_some_and(|(meta, observed)| {
                !observed.takeover && self.settled(&meta.uid, CHILD, child.digest(), observed.owned)
            })
        };
        if self.mode == Mode::Plan {
            return if is_settled(child) {
                Ok(Applied::Unchanged)
            } else {
                self.planned(child, live, owner).await
            };
        }
        let takeover = live.is_some_and(|(_, observed)| observed.takeover);
        let part = Part { child, name: CHILD, owner };
        match self.guard.effective(part, live.is_some()) {
            Some(effective) if !is_settled(&effective) => {}
            _ => return Ok(Applied::Unchanged),
        }
        let mut before = match live {
            Some(_) if takeover => Some(self.take_over(child).await?),
            // Only the live object has the texts that are kept.
            Some((_, observed))
                if observed.documents.is_some() && observed.documents == child.documents() =>
            {
                self.live_if_any(child).await?
            }
            _ => None,
        };
        let is_suspicious = self.guard.is_suspicious(part);
        if is_suspicious {
            before = self.live_if_any(child).await?;
            self.record_reaction(part, before.as_ref());
        }
        let exists = if is_suspicious { before.is_some() } else { live.is_some() };
        let Some(effective) = self.guard.effective(part, exists) else { return Ok(Applied::Unchanged) };
        if is_suspicious && exists && is_settled(&effective) {
            return Ok(Applied::Unchanged);
        }
        let sent = &match &before {
            Some(before) => effective.with_live_layout(before),
            None => effective,
        };
        let written = if exists { self.send(sent, None).await } else { self.create(sent, owner).await };
        let written = match written {
            Err(error) if error.is_immutable() => self.replace(sent, error, owner).await,
            Err(error) if error.is_invalid() => self.send_reclaimed(sent, error).await,
            written => written,
        };
        let is_left =
            |error| live.is_some_and(|(meta, _)| self.guard.record_failure(part, &meta.version(), error));
        let written = match written {
            // The contention reports it, and all else converges.
            Err(error) if is_left(&error) => return Ok(Applied::Unchanged),
            written => written?,
        };
        let after = Observed::of(&written, &self.manager).owned;
        self.remember(&written.metadata, CHILD, sent.digest(), after);
        self.guard.record_write(part, is_suspicious, || self.written(&written, None));
        Ok(match before {
            Some(before) if takeover && pods(&before) == pods(&written) => {
                Applied::TakenOver(Box::new(written))
            }
            _ => Applied::Written(Box::new(written)),
        })
    }

    /// Records what another writer has changed since our last write.
    fn record_reaction(&self, part: Part<'_>, live: Option<&DynamicObject>) {
        let subresource = (part.name == STATUS).then_some(STATUS);
        let live = live.map(|live| Reaction {
            live,
            owned: self.owned_fields(live, subresource),
            manager: &self.manager,
        });
        self.guard.record_reaction(part, live.as_ref());
    }

    /// What the manager owns after a write.
    fn written(&self, object: &DynamicObject, subresource: Option<&str>) -> Written {
        Written { fields: self.owned_fields(object, subresource), object: whole(object) }
    }

    /// The fields that the manager owns.
    fn owned_fields(&self, object: &DynamicObject, subresource: Option<&str>) -> Value {
        let entries = object.metadata.managed_fields.iter().flatten();
        let mut ours = entries.filter(|entry| is_apply(entry, &self.manager, subresource));
        let fields = ours.next().and_then(|entry| entry.fields_v1.clone());
        fields.map_or_else(|| json!({}), |fields| fields.0)
    }

    /// Creates a Secret with a random value. One that another writer created first is just as good.
    async fn create_random(&self, child: &Child, key: &str) -> Result<Applied> {
        let mut body = child.body().clone();
        body["stringData"][key] = random::text().map_err(Error::NoRandomness)?.into();
        let failed = |source| request_error("create", child.kind, &child.namespace, &child.name, source);
        let path = format!("{}?fieldManager={}", child.kind.path(Some(&child.namespace)), self.manager);
        match self.request(Method::POST, &path, "application/json", &body).await {
            Ok(_) if self.mode == Mode::Plan => Ok(Planned::creation(child)),
            Ok(created) => Ok(Applied::Written(Box::new(created))),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Applied::Unchanged),
            Err(error) => Err(failed(error)),
        }
    }

    /// Creates an object that did not exist a moment ago. If one does that the watches do not select, it may be of others.
    async fn create(&self, child: &Child, owner: &str) -> Result<DynamicObject> {
        let absent = child.at_version(ABSENT);
        match self.send(&absent, None).await {
            Err(error) if error.is_conflict() => {
                let Some(live) = self.live_if_any(child).await? else { return Err(error) };
                let observed = Observed::of(&live, &self.manager);
                self.check_owner(child, &observed, owner)?;
                check_claim(child, &observed)?;
                self.send(child, None).await
            }
            sent => sent,
        }
    }

    /// Whether an object that cannot be changed as desired is deleted and created anew. Not one that is not ours, and not one that
    /// runs pods, which would all be replaced at once: that is left to people.
    pub(crate) fn check_replaceable(&self, child: &Child, live: &DynamicObject, error: &Error) -> Result<()> {
        let observed = Observed::of(live, &self.manager);
        let is_ours = observed.owned.is_some() || observed.takeover;
        if is_ours && !child.runs_pods() {
            return Ok(());
        }
        let (kind, name) = (child.kind.kind, child.name.clone());
        Err(Error::Immutable { kind, name, cause: error.to_string() })
    }

    /// Deletes an object that cannot be changed as desired, and creates it anew.
    async fn replace(&self, child: &Child, error: Error, owner: &str) -> Result<DynamicObject> {
        let Child { kind, namespace, name, .. } = child;
        let live = self.live(*kind, namespace, name).await?;
        self.check_replaceable(child, &live, &error)?;
        prune(self, *kind, namespace, name, &Meta::of(&live.metadata)).await?;
        self.create(child, owner).await
    }

    /// Retries, after reclaiming the conflicting fields.
    async fn send_reclaimed(&self, child: &Child, error: Error) -> Result<DynamicObject> {
        self.send_reclaim(child, error).await?;
        self.send(child, None).await
    }

    /// Reclaims the fields that make an apply fail.
    pub(crate) async fn send_reclaim(&self, child: &Child, error: Error) -> Result<DynamicObject> {
        if !reclaim::is_possible(child, &error) {
            return Err(error);
        }
        let live = self.live(child.kind, &child.namespace, &child.name).await?;
        let patch = reclaim::patch(child, &live);
        let query = format!("fieldManager={}", self.manager);
        let request = Patch { content: MERGE_PATCH, query: &query, body: &patch, subresource: None };
        request.send(self, "reclaim", child.kind, &child.namespace, &child.name).await
    }

    /// Applies the status fields that the manager owns, unless they already match.
    pub async fn apply_status(&self, child: &Child, meta: &Meta, observed: &Observed) -> Result<Applied> {
        let is_settled =
            |child: &Child| self.settled(&meta.uid, STATUS, child.digest(), observed.owned_status);
        if self.mode == Mode::Plan {
            return if is_settled(child) {
                Ok(Applied::Unchanged)
            } else {
                self.planned_status(child, observed).await
            };
        }
        let part = Part { child, name: STATUS, owner: &meta.uid };
        match self.guard.effective(part, true) {
            Some(effective) if !is_settled(&effective) => {}
            _ => return Ok(Applied::Unchanged),
        }
        let is_suspicious = self.guard.is_suspicious(part);
        if is_suspicious {
            let live = self.live(child.kind, &child.namespace, &child.name).await?;
            self.record_reaction(part, Some(&live));
        }
        let Some(effective) = self.guard.effective(part, true) else { return Ok(Applied::Unchanged) };
        if is_suspicious && is_settled(&effective) {
            return Ok(Applied::Unchanged);
        }
        if observed.status_takeover {
            self.take_over_status(&effective).await?;
        }
        let written = self.send(&effective, Some(STATUS)).await?;
        let after = Observed::of(&written, &self.manager).owned_status;
        self.remember(&written.metadata, STATUS, effective.digest(), after);
        self.guard.record_write(part, is_suspicious, || self.written(&written, Some(STATUS)));
        Ok(Applied::Written(Box::new(written)))
    }

    /// An object that another owner controls is not touched.
    pub(crate) fn check_owner(&self, child: &Child, observed: &Observed, owner: &str) -> Result<()> {
        match &observed.owner {
            Some(other) if other.uid != owner => {
                let (kind, name) = (child.kind.kind, child.name.clone());
                Err(Error::Foreign { kind, name, owner: other.to_string() })
            }
            _ => Ok(()),
        }
    }

    fn settled(&self, uid: &str, part: &str, desired: Digest, live: Option<Digest>) -> bool {
        if live == Some(desired) {
            return true;
        }
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        live.is_some_and(|live| accepted.get(&key(uid, part)) == Some(&(desired, live)))
    }

    fn remember(&self, metadata: &ObjectMeta, part: &str, desired: Digest, got: Option<Digest>) {
        let key = key(metadata.uid.as_deref().unwrap_or_default(), part);
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        match got {
            Some(got) if got != desired => {
                // Entries outlive their objects. Clearing all of them costs one apply per live object.
                if accepted.len() >= ACCEPTED {
                    accepted.clear();
                }
                accepted.insert(key, (desired, got))
            }
            _ => accepted.remove(&key),
        };
    }

    pub(crate) async fn send(&self, child: &Child, subresource: Option<&str>) -> Result<DynamicObject> {
        self.send_with(child, subresource, "").await
    }

    async fn send_with(
        &self,
        child: &Child,
        subresource: Option<&str>,
        options: &str,
    ) -> Result<DynamicObject> {
        let query = format!("fieldManager={}&force=true{options}", self.manager);
        let request =
            Patch { content: "application/apply-patch+yaml", query: &query, body: child.body(), subresource };
        request.send(self, "apply", child.kind, &child.namespace, &child.name).await
    }

    /// Takes over the managed fields of the program that created the object. Returns the previous state of the
    /// object.
    async fn take_over(&self, child: &Child) -> Result<DynamicObject> {
        let Child { kind, namespace, name, .. } = child;
        let live = self.live(*kind, namespace, name).await?;
        let Some(owner) = controller(&live.metadata) else { return Ok(live) };
        let entries = live.metadata.managed_fields.as_deref().unwrap_or_default();
        // With the resourceVersion, so that a concurrent write causes a conflict.
        let entries = after_takeover(entries, owner, &self.manager);
        let resource_version = &live.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": resource_version, "managedFields": entries}});
        let request = Patch { content: MERGE_PATCH, query: "", body: &patch, subresource: None };
        request.send(self, TAKE_OVER, *kind, namespace, name).await?;
        Ok(live)
    }

    /// Takes over the managed fields of the program that reported the status before, if the API server accepts ours: after half
    /// of a takeover, the fields of one program would have two owners.
    async fn take_over_status(&self, child: &Child) -> Result<()> {
        let Child { kind, namespace, name, .. } = child;
        let ObjectMeta { managed_fields, resource_version, .. } =
            self.live(*kind, namespace, name).await?.metadata;
        let entries = managed_fields.unwrap_or_default();
        let Some(takeover) = StatusTakeover::new(&entries, child.body(), child.of_others()) else {
            return Ok(());
        };
        self.send_with(child, Some("status"), "&dryRun=All").await?;
        let entries = takeover.entries(&entries, &self.manager);
        // Not to the status subresource, where the API server ignores metadata.
        let patch = json!({"metadata": {"resourceVersion": resource_version, "managedFields": entries}});
        let request = Patch { content: MERGE_PATCH, query: "", body: &patch, subresource: None };
        request.send(self, TAKE_OVER, *kind, namespace, name).await.map(drop)
    }

    /// The live object, unless it has been deleted.
    async fn live_if_any(&self, child: &Child) -> Result<Option<DynamicObject>> {
        match self.live(child.kind, &child.namespace, &child.name).await {
            Err(error) if error.is_not_found() => Ok(None),
            live => live.map(Some),
        }
    }

    /// The whole live object.
    pub(crate) async fn live(&self, kind: Kind, namespace: &str, name: &str) -> Result<DynamicObject> {
        let path = format!("{}/{name}", kind.path(Some(namespace)));
        let failed = |source| request_error("read", kind, namespace, name, source);
        let request = Request::get(path).body(Vec::new()).map_err(|e| failed(kube::Error::HttpError(e)))?;
        self.client.request(request).await.map_err(failed)
    }
}

const TAKE_OVER: &str = "take over";

/// A version that no object has, because the first write to a store is its second revision. An apply with it creates the object, or
/// fails because there is one.
const ABSENT: &str = "1";

/// An object that people or other programs made is not touched, unless they hand it over.
pub(crate) fn check_claim(child: &Child, observed: &Observed) -> Result<()> {
    if observed.is_of_others() {
        return Err(Error::Unclaimed { kind: child.kind.kind, name: child.name.clone() });
    }
    Ok(())
}

/// The pod template, if the kind has one.
fn pods(object: &DynamicObject) -> &Value {
    &object.data["spec"]["template"]
}

fn key(uid: &str, part: &str) -> String {
    format!("{uid}/{part}")
}
