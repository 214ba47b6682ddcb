//! Who works on which objects.

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc};

use kube::Client;
use skep_converge::{Kind, Mode};
use skep_world::{Target, Watched, World};

use crate::{
    driver::{Controller, Driver, Failure},
    kinds::{Visit, each},
    plan::Plan,
    settings::Settings,
};

type Work<'a> = Pin<Box<dyn Future<Output = Result<Plan, Failure>> + Send + 'a>>;

/// A driver of any kind.
trait AnyDriver: Send + Sync {
    fn reconcile<'a>(&'a self, target: &'a Arc<Target>) -> Work<'a>;
}

impl<C: Controller> AnyDriver for Driver<C> {
    fn reconcile<'a>(&'a self, target: &'a Arc<Target>) -> Work<'a> {
        Box::pin(Driver::reconcile(self, target))
    }
}

/// One driver for each kind that is worked on.
pub(crate) struct Drivers {
    client: Client,
    world: Arc<World>,
    mode: Mode,
    by_kind: HashMap<Kind, Box<dyn AnyDriver>>,
}

impl Drivers {
    /// The drivers of all kinds.
    pub(crate) fn new(client: Client, world: Arc<World>, settings: Settings, mode: Mode) -> Self {
        let mut drivers = Self { client, world, mode, by_kind: HashMap::new() };
        each(&Arc::new(settings), &mut drivers);
        drivers
    }

    /// Works on one object.
    pub(crate) async fn reconcile(&self, target: &Arc<Target>) -> Result<Plan, Failure> {
        match self.by_kind.get(&target.kind) {
            Some(driver) => driver.reconcile(target).await,
            // Only kinds that are worked on read, so only they are woken.
            None => Ok(Plan::default()),
        }
    }
}

impl Visit for Drivers {
    fn visit<C: Controller>(&mut self, controller: C) {
        let driver = Driver::new(controller, self.client.clone(), self.world.clone(), self.mode);
        self.by_kind.insert(C::Resource::KIND, Box::new(driver));
    }
}
