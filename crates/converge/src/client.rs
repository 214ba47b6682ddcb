//! The one place that writes.

use std::{
    borrow::Cow,
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
    Child, Digest, Error, Kind, Meta, Mode, Observed, Planned, Result,
    observed::controller,
    random,
    reclaim::reclaim,
    request::{JSON_PATCH, Patch, refused},
    takeover::{status_taken_over, taken_over},
};

/// What became of a child.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// It was as it should be. Nothing was sent.
    Unchanged,
    /// It was written, and this is how it is now.
    Written(Box<DynamicObject>),
    /// It was another program's, and is ours now. Pods that run stay: their template is what it was.
    TakenOver(Box<DynamicObject>),
    /// It would be written. Nothing was.
    Planned(Box<Planned>),
}

impl Applied {
    /// What would be written, if it was only planned.
    pub fn planned(self) -> Option<Planned> {
        match self {
            Self::Planned(planned) => Some(*planned),
            Self::Unchanged | Self::Written(_) | Self::TakenOver(_) => None,
        }
    }
}

/// How many objects may be kept by others from being what was asked.
const ACCEPTED: usize = 10_000;

/// Writes objects as one field manager.
pub struct Writer {
    client: Client,
    manager: &'static str,
    mode: Mode,
    /// What the API server made of an apply where that is not what was asked for, say because a webhook changes it.
    /// The same answer to the same wish is then as good as it gets, and asking again would never end.
    accepted: Mutex<HashMap<String, (Digest, Digest)>>,
}

impl Writer {
    /// A writer that owns fields as `manager`.
    pub fn new(client: Client, manager: &'static str, mode: Mode) -> Self {
        Self { client, manager, mode, accepted: Mutex::default() }
    }

    /// The name of the field manager.
    pub fn manager(&self) -> &'static str {
        self.manager
    }

    /// The client, for reads: whatever writes goes through [`Writer::request`].
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// What becomes of its writes.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Makes the live object what the child says, for the object with the uid `owner`, if it is not so already.
    pub async fn apply(
        &self,
        child: &Child,
        live: Option<(&Meta, &Observed)>,
        owner: &str,
    ) -> Result<Applied> {
        if let Some((meta, observed)) = live {
            self.check_owner(child, observed, owner)?;
            if child.random_key().is_some() {
                return Ok(Applied::Unchanged);
            }
            if !observed.takeover && self.settled(&meta.uid, "", child.digest(), observed.owned) {
                return Ok(Applied::Unchanged);
            }
        }
        if let Some(key) = child.random_key() {
            return self.create_random(child, key).await;
        }
        if self.mode == Mode::Plan {
            return self.planned(child, live).await;
        }
        let takeover = live.is_some_and(|(_, observed)| observed.takeover);
        let before = match live {
            Some(_) if takeover => Some(self.take_over(child).await?),
            Some(_) if child.has_documents() => self.live_if_any(child).await?,
            _ => None,
        };
        let child = &match &before {
            Some(before) => Cow::Owned(child.with_live_layout(before)),
            None => Cow::Borrowed(child),
        };
        let written = match self.send(child, None).await {
            Err(error) if error.is_invalid() => {
                self.send_reclaimed(child, live.map(|(meta, _)| meta), error).await?
            }
            sent => sent?,
        };
        let after = Observed::of(&written, self.manager).owned;
        self.remember(&written.metadata, "", child.digest(), after);
        Ok(match before {
            Some(before) if takeover && pods(&before) == pods(&written) => {
                Applied::TakenOver(Box::new(written))
            }
            _ => Applied::Written(Box::new(written)),
        })
    }

    /// Creates a Secret with a random value. If somebody was quicker, theirs is as good.
    async fn create_random(&self, child: &Child, key: &str) -> Result<Applied> {
        let mut body = child.body().clone();
        body["stringData"][key] = random::text().map_err(Error::NoRandomness)?.into();
        let refused = |source| refused("create", child.kind, &child.namespace, &child.name, source);
        let path = format!("{}?fieldManager={}", child.kind.path(Some(&child.namespace)), self.manager);
        match self.request(Method::POST, &path, "application/json", &body).await {
            Ok(_) if self.mode == Mode::Plan => Ok(Planned::creation(child)),
            Ok(created) => Ok(Applied::Written(Box::new(created))),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Applied::Unchanged),
            Err(error) => Err(refused(error)),
        }
    }

    /// Tries once more, after making ours what stands in the way.
    async fn send_reclaimed(
        &self,
        child: &Child,
        seen: Option<&Meta>,
        refused: Error,
    ) -> Result<DynamicObject> {
        self.send_reclaim(child, seen, refused).await?;
        self.send(child, None).await
    }

    /// Makes ours what stands in the way of an apply.
    pub(crate) async fn send_reclaim(
        &self,
        child: &Child,
        seen: Option<&Meta>,
        refused: Error,
    ) -> Result<DynamicObject> {
        let Some(patch) = seen.and_then(|seen| reclaim(child, seen)) else { return Err(refused) };
        let query = format!("fieldManager={}", self.manager);
        let request = Patch { content: JSON_PATCH, query: &query, body: &patch, subresource: None };
        request.send(self, "reclaim", child.kind, &child.namespace, &child.name).await
    }

    /// Makes the status fields that the manager owns what the child says, if they are not so already.
    pub async fn apply_status(&self, child: &Child, meta: &Meta, observed: &Observed) -> Result<Applied> {
        if self.settled(&meta.uid, "status", child.digest(), observed.owned_status) {
            return Ok(Applied::Unchanged);
        }
        if self.mode == Mode::Plan {
            return self.planned_status(child, observed).await;
        }
        if observed.status_takeover {
            self.take_over_status(child).await?;
        }
        let written = self.send(child, Some("status")).await?;
        let after = Observed::of(&written, self.manager).owned_status;
        self.remember(&written.metadata, "status", child.digest(), after);
        Ok(Applied::Written(Box::new(written)))
    }

    /// An object that somebody else controls is not touched.
    fn check_owner(&self, child: &Child, observed: &Observed, owner: &str) -> Result<()> {
        match &observed.owner {
            Some(other) if other.uid != owner => {
                let (kind, name) = (child.kind.kind, child.name.clone());
                Err(Error::Foreign { kind, name, owner: other.description.clone() })
            }
            _ => Ok(()),
        }
    }

    fn settled(&self, uid: &str, part: &str, wanted: Digest, live: Option<Digest>) -> bool {
        if live == Some(wanted) {
            return true;
        }
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        live.is_some_and(|live| accepted.get(&key(uid, part)) == Some(&(wanted, live)))
    }

    fn remember(&self, metadata: &ObjectMeta, part: &str, wanted: Digest, got: Option<Digest>) {
        let key = key(metadata.uid.as_deref().unwrap_or_default(), part);
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        match got {
            Some(got) if got != wanted => {
                // Objects come and go, and their entries stay. To forget them all costs one apply for each that lives.
                if accepted.len() >= ACCEPTED {
                    accepted.clear();
                }
                accepted.insert(key, (wanted, got))
            }
            _ => accepted.remove(&key),
        };
    }

    pub(crate) async fn send(&self, child: &Child, subresource: Option<&str>) -> Result<DynamicObject> {
        let query = format!("fieldManager={}&force=true", self.manager);
        let request =
            Patch { content: "application/apply-patch+yaml", query: &query, body: child.body(), subresource };
        request.send(self, "apply", child.kind, &child.namespace, &child.name).await
    }

    /// Makes the record of the program that created the object ours. Returns the object as it was before.
    async fn take_over(&self, child: &Child) -> Result<DynamicObject> {
        let Child { kind, namespace, name, .. } = child;
        let live = self.live(*kind, namespace, name).await?;
        let Some(owner) = controller(&live.metadata) else { return Ok(live) };
        let entries = live.metadata.managed_fields.as_deref().unwrap_or_default();
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": live.metadata.resource_version},
            {"op": "replace", "path": "/metadata/managedFields", "value": taken_over(entries, owner, self.manager)},
        ]);
        let request = Patch { content: JSON_PATCH, query: "", body: &patch, subresource: None };
        request.send(self, TAKE_OVER, *kind, namespace, name).await?;
        Ok(live)
    }

    /// Makes the record of the program that reported the status before ours.
    async fn take_over_status(&self, child: &Child) -> Result<()> {
        let Child { kind, namespace, name, .. } = child;
        let ObjectMeta { managed_fields, resource_version, .. } =
            self.live(*kind, namespace, name).await?.metadata;
        let entries = managed_fields.unwrap_or_default();
        let Some(entries) = status_taken_over(&entries, child.body(), self.manager) else { return Ok(()) };
        // With the version, so that whoever writes meanwhile makes it a conflict; and not to the status, where the API
        // server takes no metadata.
        let patch = json!({"metadata": {"resourceVersion": resource_version, "managedFields": entries}});
        let content = "application/merge-patch+json";
        let request = Patch { content, query: "", body: &patch, subresource: None };
        request.send(self, TAKE_OVER, *kind, namespace, name).await.map(drop)
    }

    /// The object as it is, if it was not deleted meanwhile.
    async fn live_if_any(&self, child: &Child) -> Result<Option<DynamicObject>> {
        match self.live(child.kind, &child.namespace, &child.name).await {
            Err(error) if error.is_gone() => Ok(None),
            live => live.map(Some),
        }
    }

    /// The object as it is, whole.
    pub(crate) async fn live(&self, kind: Kind, namespace: &str, name: &str) -> Result<DynamicObject> {
        let path = format!("{}/{name}", kind.path(Some(namespace)));
        let refused = |source| refused("read", kind, namespace, name, source);
        let request = Request::get(path).body(Vec::new()).map_err(|e| refused(kube::Error::HttpError(e)))?;
        self.client.request(request).await.map_err(refused)
    }
}

const TAKE_OVER: &str = "take over";

/// What pods are made from, where any are.
fn pods(object: &DynamicObject) -> &Value {
    &object.data["spec"]["template"]
}

fn key(uid: &str, part: &str) -> String {
    format!("{uid}/{part}")
}
