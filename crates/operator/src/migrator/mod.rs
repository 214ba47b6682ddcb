//! Moves stored objects to the version that their CRD stores by now, so that an older version can be dropped one day.
//!
//! The API server keeps an object as it was last written. When a CRD changes its storage version, objects that nobody
//! writes stay in the old one, and the CRD's `status.storedVersions` says that there may be such. Here each is written
//! once with no change at all, and then the list is cut down to the one version.
//!
//! It can end at any point: whoever starts next begins with the list again, and writing an object twice changes nothing.

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
        watcher::{self, Event, watcher},
    },
};
use skep_api::{GROUP, crd::MIGRATE_LABEL};
use skep_converge::Mode;
use tokio::{sync::watch, time::Instant};
use tracing::{info, warn};

use crate::notice::{Notice, Notices, Severity};
use schedule::Schedule;
use work::Work;

pub use pass::Failure;

/// Who writes, in audit logs and events.
const MANAGER: &str = "skep-storageversionmigrator";

/// How long a CRD is left alone after a change. Each API server takes a moment to store by a new definition, and no
/// answer tells whether it does so already: what it wrote meanwhile would be old, and be taken for new.
const SETTLE: Duration = Duration::from_secs(10);

/// Moves the stored objects of every CRD of this group that has the label for it.
pub struct Migrator {
    client: Client,
    notices: Notices,
}

/// What was done for a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// Everything is stored in the storage version, or it is not for us to do.
    Nothing,
    /// So many objects were looked at, and the CRD says so.
    Done(usize),
}

impl Migrator {
    /// One that has not looked at anything yet.
    pub fn new(client: Client) -> Self {
        Self { notices: Notices::new(client.clone(), MANAGER, Mode::Write), client }
    }

    /// Works until `stop` says so, and then ends where it is.
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
                    Some(Ok(Event::Apply(crd) | Event::InitApply(crd))) if is_ours(&crd.name_any()) => {
                        schedule.notice(crd.name_any(), Instant::now() + SETTLE);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => warn!(%error, "the CRDs cannot be watched"),
                    None => return,
                },
                crd = schedule.next() => match self.migrate(&crd).await {
                    Ok(_) => schedule.done(&crd),
                    // Its change wakes it by itself; this is for a change that was seen before.
                    Err(Failure::Changed) => schedule.notice(crd, Instant::now() + SETTLE),
                    Err(failure) => {
                        let pause = schedule.failed(&crd, Instant::now());
                        warn!(crd, error = %failure, ?pause, "stored objects are still of another version");
                    }
                },
            }
        }
    }

    /// Moves the stored objects of one CRD now, if there is something to do.
    pub async fn migrate(&self, crd: &str) -> Result<Migration, Failure> {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        let definition = api.get_opt(crd).await.map_err(Failure::Definition)?;
        let Some(work) = definition.as_ref().and_then(Work::of) else { return Ok(Migration::Nothing) };
        info!(crd, storage = work.storage(), "storing all objects in the storage version");
        let result = match pass::store_anew(&self.client, &work).await {
            Ok(objects) => pass::trim(&api, &work).await.map(|()| objects),
            Err(failure) => Err(failure),
        };
        let notice = match &result {
            Ok(objects) => {
                info!(
                    crd,
                    objects,
                    storage = work.storage(),
                    "all objects are stored in the storage version"
                );
                let note = format!("all {objects} objects are stored in {}", work.storage());
                Some(notice(Severity::Normal, "StorageVersionMigrationSucceeded", "Migrate", note))
            }
            Err(failure) => failure.action().map(|action| {
                let note = format!("{failure}; it is tried again");
                notice(Severity::Warning, "StorageVersionMigrationFailed", action, note)
            }),
        };
        self.notices.publish(work.reference(), notice.into_iter().collect()).await;
        result.map(Migration::Done)
    }
}

fn is_ours(crd: &str) -> bool {
    crd.strip_suffix(GROUP).is_some_and(|plural| plural.ends_with('.'))
}

fn notice(severity: Severity, reason: &str, action: &'static str, note: String) -> Notice {
    Notice { severity, reason: reason.into(), action, note }
}
