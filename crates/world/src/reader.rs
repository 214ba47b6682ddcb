//! Look-ups that are remembered.

use std::sync::{Arc, PoisonError};

use crate::{Entry, ReadError, Readable, Target, Watched, World, dependencies::Topic};

/// One look over the cluster, on behalf of one target. Whatever is looked up wakes the target when it changes.
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
    pub fn get<W: Watched>(&mut self, name: &str) -> Option<Entry<W::Kept>> {
        let namespace = self.target.namespace.clone();
        self.subscribe(Topic::name(W::KIND, &namespace, name));
        let kept = self.world.kept::<W>()?;
        kept.store.read().unwrap_or_else(PoisonError::into_inner).get(&namespace, name).cloned()
    }

    /// The objects with an index key in the target's namespace, sorted by name.
    pub fn by_index<W: Watched>(&mut self, key: &str) -> Vec<(String, Entry<W::Kept>)> {
        let namespace = self.target.namespace.clone();
        self.subscribe(Topic::index(W::KIND, &namespace, key));
        let Some(kept) = self.world.kept::<W>() else { return Vec::new() };
        kept.store.read().unwrap_or_else(PoisonError::into_inner).by_index(&namespace, key)
    }

    /// The names of the objects with an index key in the target's namespace, sorted. It wakes the target when one comes
    /// or goes, and not when one changes.
    pub fn members<W: Watched>(&mut self, key: &str) -> Vec<String> {
        let namespace = self.target.namespace.clone();
        self.subscribe(Topic::members(W::KIND, &namespace, key));
        let Some(kept) = self.world.kept::<W>() else { return Vec::new() };
        kept.store.read().unwrap_or_else(PoisonError::into_inner).members(&namespace, key)
    }

    /// Lists a kind in the target's namespace anew, so that what was created just now is known even if the watch is
    /// behind. For what cannot be undone; everything else waits for the watch.
    pub async fn refresh<W: Watched>(&self) -> Result<(), ReadError> {
        self.world.list::<W>(Some(&self.target.namespace)).await
    }

    /// The content of the object of that name in the target's namespace. It is fetched when it has changed since it
    /// was last read by anybody.
    pub async fn content<W: Readable>(&mut self, name: &str) -> Result<Option<Arc<W::Content>>, ReadError> {
        self.subscribe(Topic::content(W::KIND, &self.target.namespace.clone(), name));
        let Some(entry) = self.get::<W>(name) else { return Ok(None) };
        let Some(kept) = self.world.kept::<W>() else { return Ok(None) };
        kept.contents.read::<W>(self.world.client.as_ref(), &self.target.namespace, name, &entry.meta).await
    }

    /// Ends the look: what was not looked up this time wakes the target no more.
    pub fn finish(self) {
        self.world.dependencies().retain(&self.target, &self.topics);
    }

    /// Before the look-up, so that no change between the two is missed.
    fn subscribe(&mut self, topic: Topic) {
        if !self.topics.contains(&topic) {
            self.topics.push(topic);
            self.world.dependencies().add(&self.target, topic);
        }
    }
}
