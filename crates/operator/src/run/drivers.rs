//! Who works on which objects.

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc};

use kube::Client;
use skep_converge::Kind;
use skep_world::{Target, Watched, World};

use crate::{
    driver::{Controller, Driver, Failure},
    kinds::Visit,
};

type Work<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

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
pub(super) struct Drivers {
    client: Client,
    world: Arc<World>,
    by_kind: HashMap<Kind, Box<dyn AnyDriver>>,
}

impl Drivers {
    pub(super) fn new(client: Client, world: Arc<World>) -> Self {
        Self { client, world, by_kind: HashMap::new() }
    }

    /// Works on one object.
    pub(super) async fn reconcile(&self, target: &Arc<Target>) -> Result<(), Failure> {
        match self.by_kind.get(&target.kind) {
            Some(driver) => driver.reconcile(target).await,
            // Only kinds that are worked on read, so only they are woken.
            None => Ok(()),
        }
    }
}

impl Visit for Drivers {
    fn visit<C: Controller>(&mut self, controller: C) {
        let driver = Driver::new(controller, self.client.clone(), self.world.clone());
        self.by_kind.insert(C::Resource::KIND, Box::new(driver));
    }
}
