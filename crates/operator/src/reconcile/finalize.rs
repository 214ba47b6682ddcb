//! The deletion of objects.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_converge::{Finalizer, Meta, Observed, prune};
use skep_world::Reader;

use super::{Computed, Controller, Outcome, Plan, ReconcileError, Reconciler, Subject};
use crate::resources::{children, kind_of, referrers};

/// The finalizer of an object whose children the garbage collector releases before it is deleted.
const ORPHAN: &str = "orphan";

impl<K: Controller> Reconciler<K> {
    /// Removes the finalizer, unless something blocks the deletion. The object is queued again when nothing blocks it any more.
    pub(super) async fn finalize(
        &self,
        reader: &mut Reader,
        object: Arc<K>,
        meta: &Meta,
        observed: &Observed,
        metadata: &ObjectMeta,
        plan: &mut Plan,
    ) -> Result<(), ReconcileError> {
        let Some(finalizer) = K::FINALIZER.filter(|finalizer| finalizer.is_on(metadata)) else {
            return Ok(());
        };
        if K::BLOCKS_DELETION {
            let mut computed = Computed::new(object.clone(), &self.settings, reader).await?;
            if K::deletion_blocker(&computed.inputs).is_none() {
                K::refresh(reader).await?;
                computed = Computed::new(object, &self.settings, reader).await?;
            }
            if let Some(problem) = K::deletion_blocker(&computed.inputs) {
                return self
                    .report(&computed, &Outcome::Blocked(problem), Vec::new(), meta, observed, plan)
                    .await;
            }
        }
        self.release(reader, finalizer, metadata, plan).await
    }

    /// Removes the finalizer of an object that cannot be parsed, unless others refer to it.
    pub(super) async fn finalize_unreadable(
        &self,
        reader: &mut Reader,
        metadata: &ObjectMeta,
        plan: &mut Plan,
    ) -> Result<(), ReconcileError> {
        plan.subject = Subject::Present;
        let Some(finalizer) = K::FINALIZER.filter(|finalizer| finalizer.is_on(metadata)) else {
            return Ok(());
        };
        if K::BLOCKS_DELETION {
            K::refresh(reader).await?;
            let name = reader.target().name.to_string();
            if !referrers::<K>(reader, &name).is_empty() {
                return Ok(());
            }
        }
        self.release(reader, finalizer, metadata, plan).await
    }

    /// Deletes what the garbage collector does not find, and removes the finalizer.
    async fn release(
        &self,
        reader: &mut Reader,
        finalizer: Finalizer,
        metadata: &ObjectMeta,
        plan: &mut Plan,
    ) -> Result<(), ReconcileError> {
        let name = metadata.name.clone().unwrap_or_default();
        // kubectl delete --cascade=orphan: the children stay.
        let is_orphaning = metadata.finalizers.iter().flatten().any(|finalizer| finalizer == ORPHAN);
        let unowned = if is_orphaning { Vec::new() } else { K::unowned(&name) };
        for (kind, child_name) in unowned {
            let Some(child) = children::get(reader, kind, &child_name) else { continue };
            // A name proves nothing: it may be the child of another object, or made by hand.
            let is_ours = match &child.observed.owner {
                Some(owner) => Some(&owner.uid) == metadata.uid.as_ref(),
                None => child.server.as_deref() == Some(&*name),
            };
            if is_ours {
                let namespace = &reader.target().namespace;
                plan.writes.extend(prune(&self.writer, kind, namespace, &child_name, &child.meta).await?);
            }
        }
        let removed = finalizer.remove(&self.writer, kind_of::<K>(), metadata).await?;
        plan.writes.extend(removed.planned());
        Ok(())
    }
}
