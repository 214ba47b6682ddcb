//! Look-ups that subscribe.

use std::sync::{Arc, PoisonError};

use crate::{Content, Entry, ReadError, Target, Watched, World, dependencies::Topic};

/// A view of the cluster for one reconciliation of one target. A change of any object that it looked up requeues the
/// target.
pub struct Reader {
    world: Arc<World>,
    target: Arc<Target>,
    topics: Vec<Topic>,
}

impl Reader {
    pub(crate) fn new(world: Arc<World>, target: Arc<Target>) -> Self {
        Self { world, target, topics: Vec::new() }
    }

    /// The target that it reads for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The object of that name in the target's namespace.
    pub fn get<W: Watched>(&mut self, name: &str) -> Option<Entry<W::Cached>> {
        let namespace = self.target.namespace.clone();
        self.subscribe(Topic::name(W::kind(), &namespace, name));
        let cached = self.world.cached::<W>()?;
        cached.store.read().unwrap_or_else(PoisonError::into_inner).get(&namespace, name).cloned()
    }

    /// The objects with an index key in the target's namespace, sorted by name.
    pub fn by_index<W: Watched>(&mut self, key: &str) -> Vec<(String, Entry<W::Cached>)> {
        let namespace = self.target.namespace.clone();
        self.subscribe(Topic::index(W::kind(), &namespace, key));
        let Some(cached) = self.world.cached::<W>() else { return Vec::new() };
        cached.store.read().unwrap_or_else(PoisonError::into_inner).by_index(&namespace, key)
    }

    /// The names of the objects with an index key in the target's namespace, sorted. It requeues the target when one
    /// is added or removed, not when one changes.
    pub fn members<W: Watched>(&mut self, key: &str) -> Vec<String> {
        let namespace = self.target.namespace.clone();
        self.subscribe(Topic::members(W::kind(), &namespace, key));
        let Some(cached) = self.world.cached::<W>() else { return Vec::new() };
        cached.store.read().unwrap_or_else(PoisonError::into_inner).members(&namespace, key)
    }

    /// Lists a kind in the target's namespace again, so that objects created just now are known even if the watch
    /// lags. For irreversible actions; everything else waits for the watch.
    pub async fn refresh<W: Watched>(&self) -> Result<(), ReadError> {
        self.world.list::<W>(Some(&self.target.namespace)).await
    }

    /// A part of the content of the object of that name in the target's namespace. It is fetched only if the object has changed
    /// since any reader last fetched it, or if that was long ago.
    pub async fn content<C: Content>(&mut self, name: &str) -> Result<Option<Arc<C>>, ReadError> {
        self.subscribe(Topic::content(C::Of::kind(), &self.target.namespace.clone(), name));
        let Some(entry) = self.get::<C::Of>(name) else { return Ok(None) };
        let Some(cached) = self.world.cached::<C::Of>() else { return Ok(None) };
        cached.contents.read::<C>(self.world.client.as_ref(), &self.target.namespace, name, &entry.meta).await
    }

    /// Ends the view: objects that were not looked up this time no longer requeue the target.
    pub fn finish(self) {
        self.world.dependencies().retain(&self.target, &self.topics);
    }

    /// Ends the view of a target that does not exist any more: nothing requeues it but its own creation.
    pub fn discard(self) {
        self.world.dependencies().retain(&self.target, &[]);
    }

    /// Before the look-up, so that no change between the two is missed.
    fn subscribe(&mut self, topic: Topic) {
        if !self.topics.contains(&topic) {
            self.topics.push(topic);
            self.world.dependencies().add(&self.target, topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::DynamicObject;
    use skep_converge::Kind;

    use super::*;

    struct ConfigMaps;

    impl Watched for ConfigMaps {
        type Cached = ();

        fn kind() -> Kind {
            Kind::of::<ConfigMap>()
        }

        fn project(_: &DynamicObject) {}
    }

    #[test]
    fn an_object_that_does_not_exist_any_more_leaves_no_subscription() {
        let world = World::builder().control::<ConfigMaps>().offline();
        let target = Target { kind: ConfigMaps::kind(), namespace: "ns".into(), name: "a".into() };
        let mut reader = world.reader(Arc::new(target));
        assert!(reader.get::<ConfigMaps>("a").is_none());
        let topic = Topic::name(ConfigMaps::kind(), "ns", "a");
        assert_eq!(world.dependencies().readers(topic).len(), 1);
        reader.discard();
        assert_eq!(world.dependencies().readers(topic).len(), 0);
    }
}
