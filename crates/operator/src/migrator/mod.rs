//! Migrates stored objects to the storage version of their CRD, so that an older version can be removed one day.
//!
//! The API server stores an object in the version that was current when it was last written. When a CRD changes its storage
//! version, objects that are not written stay in the old one, and the CRD's `status.storedVersions` lists both. The
//! migrator writes each object once without a change, and then reduces the list to the storage version.
//!
//! It can be stopped at any point: the next run starts with the list again, and writing an object twice changes nothing.

mod pass;
mod schedule;
mod work;

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event as WatchEvent, watcher},
    },
};
use skep_api::{GROUP, crd::MIGRATE_LABEL, events::EventReason};
use skep_converge::Mode;
use tokio::{sync::watch, time::Instant};
use tracing::{info, warn};

use crate::reconcile::{Event, EventPublisher};
use schedule::Schedule;
use work::Work;

pub use pass::MigrationError;

/// The field manager and reporter.
const MANAGER: &str = "skep-storageversionmigrator";

/// How long to wait after a change of a CRD. Each API server takes a moment to store by a new definition, and no
/// response shows whether it does so already: an object that it wrote meanwhile would count as migrated.
const SETTLE: Duration = Duration::from_secs(10);

/// Migrates the stored objects of every labelled CRD of this group.
pub struct Migrator {
    client: Client,
    events: EventPublisher,
}

/// The result for a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// Everything is stored in the storage version, or the CRD is not ours.
    Nothing,
    /// This many objects were written, and the CRD lists one version.
    Done(usize),
}

impl Migrator {
    /// A migrator that has done nothing yet.
    pub fn new(client: Client) -> Self {
        Self { events: EventPublisher::new(client.clone(), MANAGER, Mode::Write), client }
    }

    /// Runs until `stop` is true.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&self) {
        let crds = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(self.client.clone());
        let labelled = watcher::Config::default().labels(&format!("{MIGRATE_LABEL}=true"));
        let mut events = pin!(watcher(crds, labelled).default_backoff());
        let mut schedule = Schedule::default();
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(WatchEvent::Apply(crd) | WatchEvent::InitApply(crd))) if is_ours(&crd.name_any()) => {
                        schedule.event(crd.name_any(), Instant::now() + SETTLE);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => warn!(%error, "cannot watch the CRDs; retrying"),
                    None => return,
                },
                crd = schedule.next() => match self.migrate(&crd).await {
                    Ok(_) => schedule.done(&crd),
                    // A change schedules it anyway; this is for one that was seen before.
                    Err(MigrationError::Changed) => schedule.event(crd, Instant::now() + SETTLE),
                    Err(error) => {
                        let pause = schedule.failed(&crd, Instant::now());
                        warn!(crd, %error, ?pause, "stored objects are not migrated yet; retrying");
                    }
                },
            }
        }
    }

    /// Migrates the stored objects of one CRD now, if necessary.
    pub async fn migrate(&self, crd: &str) -> Result<Migration, MigrationError> {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        let definition = api.get_opt(crd).await.map_err(MigrationError::Definition)?;
        let Some(work) = definition.as_ref().and_then(Work::of) else { return Ok(Migration::Nothing) };
        info!(crd, storage = work.storage(), "migrating stored objects");
        let result = match pass::rewrite(&self.client, &work).await {
            Ok(objects) => pass::trim(&api, &work).await.map(|()| objects),
            Err(error) => Err(error),
        };
        let event = match &result {
            Ok(objects) => {
                info!(crd, objects, storage = work.storage(), "migrated stored objects");
                let note = format!("all {objects} objects are stored in {}", work.storage());
                Some(Event::new(EventReason::StorageVersionMigrationSucceeded, note))
            }
            Err(error) => error.action().map(|action| {
                let note = format!("{error}; retrying");
                Event { action, ..Event::new(EventReason::StorageVersionMigrationFailed, note) }
            }),
        };
        self.events.publish(work.reference(), event.into_iter().collect()).await;
        result.map(Migration::Done)
    }
}

fn is_ours(crd: &str) -> bool {
    crd.strip_suffix(GROUP).is_some_and(|plural| plural.ends_with('.'))
}
