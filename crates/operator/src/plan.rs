//! What the operator would do to the objects of a cluster: the same look-ups, the same computation and the same
//! decisions, with nothing written.

use std::sync::Arc;

use futures::{StreamExt, stream};
use skep_converge::{Mode, Planned, Write};
use skep_world::{ReadError, Target};

use crate::{
    driver::Failure, drivers::Drivers, notice::Notice, platform, requests, settings::Settings,
    watched::watches,
};

/// How many objects are planned for at once.
const AT_ONCE: usize = 8;

/// What would be done for one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Whether there is something to plan for.
    pub found: Found,
    /// What would be written, in this order.
    pub writes: Vec<Planned>,
    /// What people would be told by events.
    pub notices: Vec<Notice>,
    /// Why the object cannot have its children as it is. What runs goes on running.
    pub problem: Option<String>,
}

/// What was found under the name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// Nothing: it is gone.
    #[default]
    Nothing,
    /// An object that is not what its kind says, for this reason.
    Unreadable(String),
    /// The object.
    Object,
}

/// What a plan comes down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// There is nothing to do.
    Settled,
    /// Only its status or its metadata would be written.
    Status,
    /// Fields would change hands, and no child would be another.
    TakeOver,
    /// Children would be made, changed or deleted.
    Change,
    /// The object must change first, or what it refers to.
    Blocked,
    /// The object cannot be read.
    Unreadable,
}

impl Verdict {
    /// The verdict in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Status => "status",
            Self::TakeOver => "take-over",
            Self::Change => "change",
            Self::Blocked => "blocked",
            Self::Unreadable => "unreadable",
        }
    }
}

impl Plan {
    /// What it comes down to.
    pub fn verdict(&self) -> Verdict {
        let changes = |planned: &Planned| match planned.write {
            Write::Create | Write::Delete => true,
            Write::Apply => !planned.changes.is_empty(),
            Write::Report | Write::Mark => false,
        };
        match self {
            Self { found: Found::Unreadable(_), .. } => Verdict::Unreadable,
            Self { problem: Some(_), .. } => Verdict::Blocked,
            _ if self.writes.iter().any(changes) => Verdict::Change,
            _ if self
                .writes
                .iter()
                .any(|planned| planned.write == Write::Apply || !planned.from.is_empty()) =>
            {
                Verdict::TakeOver
            }
            _ if !self.writes.is_empty() => Verdict::Status,
            _ => Verdict::Settled,
        }
    }

    /// Whether pods that run would be replaced.
    pub fn rolls_pods(&self) -> bool {
        self.writes.iter().any(Planned::rolls_pods)
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No client can be made of the configuration.
    #[error("cannot talk to the cluster: {0}")]
    Client(#[from] kube::Error),
    /// The cluster does not know a kind.
    #[error("{0}: the cluster does not know this kind; install the CRDs first (skep crds)")]
    Unknown(ReadError),
    /// Something could not be read.
    #[error(transparent)]
    Read(ReadError),
}

/// What was planned for one object, or why that could not be found out.
pub type Planning = (Arc<Target>, Result<Plan, Failure>);

/// Looks the namespaces over once, or all if there are none, and plans for the objects that are chosen.
pub async fn plan(
    config: kube::Config,
    namespaces: &[String],
    settings: Settings,
    chosen: impl Fn(&Target) -> bool,
) -> Result<Vec<Planning>, PlanError> {
    let client = requests::counted_client(config, Mode::Plan, |_, _| {})?;
    let read = |error: ReadError| {
        if error.is_unknown() { PlanError::Unknown(error) } else { PlanError::Read(error) }
    };
    let world = watches().list(&client, namespaces).await.map_err(read)?;
    let mut targets = world.queue().drain();
    targets.retain(|target| chosen(target));
    targets.sort_by_cached_key(|target| (target.namespace.clone(), target.kind.kind, target.name.clone()));
    let settings = platform::settled(&settings, &client).await?;
    let drivers = Drivers::new(client, world, settings, Mode::Plan);
    let drivers = &drivers;
    let plans = stream::iter(targets).map(async |target| {
        let plan = drivers.reconcile(&target).await;
        (target, plan)
    });
    Ok(plans.buffered(AT_ONCE).collect().await)
}
