//! The ways in which a server of one's own is started here.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use skep_config::RunConfig;
use skep_proxy::runtime::{Attach, BoxRead, BoxWrite, Local};

use super::engine::{Container, Recipe};

/// How a server is started, again and again.
#[derive(Clone)]
pub(super) struct Start {
    /// How to make its container, if it has one.
    recipe: Option<Arc<Recipe>>,
    starts: Arc<Starts>,
}

/// What came of all starts of a server.
#[derive(Default)]
struct Starts {
    times: AtomicU32,
    /// Why the last one did not succeed.
    problem: Mutex<Option<String>>,
}

impl Start {
    /// By the command line in its RunConfig. A server elsewhere has none, and is never started.
    pub(super) fn process() -> Self {
        Self { recipe: None, starts: Arc::default() }
    }

    pub(super) fn container(recipe: Arc<Recipe>) -> Self {
        Self { recipe: Some(recipe), ..Self::process() }
    }

    pub(super) fn recipe(&self) -> Option<&Recipe> {
        self.recipe.as_deref()
    }

    /// How often it was started.
    pub(super) fn times(&self) -> u32 {
        self.starts.times.load(Ordering::Relaxed)
    }

    /// Why it was not started the last time, if it was not.
    pub(super) fn problem(&self) -> Option<String> {
        self.starts.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn attachment(&self, config: &RunConfig) -> Result<Attachment, String> {
        let way = match &self.recipe {
            None => Way::Process(Local::new(config).map_err(|error| error.to_string())?),
            Some(recipe) => Way::Container(Container::new(recipe.clone())),
        };
        Ok(Attachment { way, starts: self.starts.clone() })
    }
}

/// A server that is started when somebody speaks to it.
pub(super) struct Attachment {
    way: Way,
    starts: Arc<Starts>,
}

enum Way {
    Process(Local),
    Container(Container),
}

impl Attach for Attachment {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        self.starts.times.fetch_add(1, Ordering::Relaxed);
        let attached = match &self.way {
            Way::Process(process) => process.attach().await,
            Way::Container(container) => container.attach().await,
        };
        let problem = attached.as_ref().err().map(ToString::to_string);
        *self.starts.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
        attached
    }
}
