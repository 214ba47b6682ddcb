//! The reconcilers of all kinds, and what the operator watches for them.

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc};

use kube::Client;
use skep_api::{for_each_kind, kinds::*};
use skep_converge::{Kind, Mode};
use skep_world::{Builder, Target, World};

use crate::{
    reconcile::{Controller, Plan, ReconcileError, Reconciler, UndeclaredFields},
    resources::{
        ConfigMaps, Custom, Deployments, ManagedDeployments, ManagedStatefulSets, Pods, RoleBindings, Roles,
        Secrets, ServiceAccounts, Services, StatefulSets, kind_of,
    },
    settings::Settings,
};

pub(super) type Reconciling<'a> = Pin<Box<dyn Future<Output = Result<Plan, ReconcileError>> + Send + 'a>>;

/// A reconciler of any kind.
pub(super) trait AnyReconciler: Send + Sync {
    fn reconcile<'a>(&'a self, target: &'a Arc<Target>) -> Reconciling<'a>;

    fn requeue(&self);
}

impl<K: Controller> AnyReconciler for Reconciler<K> {
    fn reconcile<'a>(&'a self, target: &'a Arc<Target>) -> Reconciling<'a> {
        Box::pin(Reconciler::reconcile(self, target))
    }

    fn requeue(&self) {
        Reconciler::requeue(self);
    }
}

/// One reconciler for each kind of the API.
pub(crate) struct Registry(HashMap<Kind, Box<dyn AnyReconciler>>);

impl Registry {
    /// Reconcilers that write with the client, or only plan to.
    pub(crate) fn new(
        client: &Client,
        world: &Arc<World>,
        settings: Settings,
        undeclared: &Arc<UndeclaredFields>,
        mode: Mode,
    ) -> Self {
        let settings = Arc::new(settings);
        let mut reconcilers: HashMap<Kind, Box<dyn AnyReconciler>> = HashMap::new();
        macro_rules! add {
            ($($kind:ident),+) => { $(
                let reconciler = Reconciler::<$kind>::new(
                    client.clone(), world.clone(), settings.clone(), undeclared.clone(), mode,
                );
                reconcilers.insert(kind_of::<$kind>(), Box::new(reconciler));
            )+ };
        }
        for_each_kind!(add);
        Self(reconcilers)
    }

    /// One reconciler, for one kind.
    #[cfg(test)]
    pub(super) fn of(kind: Kind, reconciler: Box<dyn AnyReconciler>) -> Self {
        Self(HashMap::from([(kind, reconciler)]))
    }

    /// Queues all objects of a kind.
    pub(crate) fn requeue(&self, kind: Kind) {
        if let Some(reconciler) = self.0.get(&kind) {
            reconciler.requeue();
        }
    }

    /// Reconciles one object.
    pub(crate) async fn reconcile(&self, target: &Arc<Target>) -> Result<Plan, ReconcileError> {
        match self.0.get(&target.kind) {
            Some(reconciler) => reconciler.reconcile(target).await,
            // Only kinds that are reconciled are queued.
            None => Ok(Plan::default()),
        }
    }
}

/// What is watched: every kind of the API, their children, and what they refer to.
pub fn watches() -> Builder {
    macro_rules! controlled {
        ($($kind:ident),+) => { World::builder()$(.control::<Custom<$kind>>())+ };
    }
    for_each_kind!(controlled)
        .watch::<Deployments>()
        .watch::<StatefulSets>()
        .watch::<ManagedDeployments>()
        .watch::<ManagedStatefulSets>()
        .watch::<Services>()
        .watch::<ServiceAccounts>()
        .watch::<Roles>()
        .watch::<RoleBindings>()
        .watch::<ConfigMaps>()
        .watch::<Secrets>()
        .watch::<Pods>()
}
