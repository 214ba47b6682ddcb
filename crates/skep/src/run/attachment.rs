//! The ways in which a server of one's own is started here.

use std::{
    io,
    sync::{
        Arc,
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
    /// How often that was done.
    times: Arc<AtomicU32>,
}

impl Start {
    /// By the command line in its RunConfig. A server elsewhere has none, and is never started.
    pub(super) fn process() -> Self {
        Self { recipe: None, times: Arc::default() }
    }

    pub(super) fn container(recipe: Arc<Recipe>) -> Self {
        Self { recipe: Some(recipe), ..Self::process() }
    }

    pub(super) fn recipe(&self) -> Option<&Recipe> {
        self.recipe.as_deref()
    }

    /// How often it was started.
    pub(super) fn times(&self) -> u32 {
        self.times.load(Ordering::Relaxed)
    }

    pub(super) fn attachment(&self, config: &RunConfig) -> Result<Attachment, String> {
        let way = match &self.recipe {
            None => Way::Process(Local::new(config).map_err(|error| error.to_string())?),
            Some(recipe) => Way::Container(Container::new(recipe.clone())),
        };
        Ok(Attachment { way, times: self.times.clone() })
    }
}

/// A server that is started when somebody speaks to it.
pub(super) struct Attachment {
    way: Way,
    times: Arc<AtomicU32>,
}

enum Way {
    Process(Local),
    Container(Container),
}

impl Attach for Attachment {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        self.times.fetch_add(1, Ordering::Relaxed);
        match &self.way {
            Way::Process(process) => process.attach().await,
            Way::Container(container) => container.attach().await,
        }
    }
}
