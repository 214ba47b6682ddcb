//! Subscriptions: which reader has read what.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use skep_converge::Kind;

use crate::Target;

/// Something that can be read: what is cached of an object, its whole content, the objects with an index key, or
/// which objects these are. It is a hash of eight bytes; a collision only causes a needless requeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Topic(u64);

impl Topic {
    pub(crate) fn name(kind: Kind, namespace: &str, name: &str) -> Self {
        Self::hash(&(kind.group, kind.plural, "name", namespace, name))
    }

    pub(crate) fn content(kind: Kind, namespace: &str, name: &str) -> Self {
        Self::hash(&(kind.group, kind.plural, "content", namespace, name))
    }

    pub(crate) fn index(kind: Kind, namespace: &str, key: &str) -> Self {
        Self::hash(&(kind.group, kind.plural, "index", namespace, key))
    }

    pub(crate) fn members(kind: Kind, namespace: &str, key: &str) -> Self {
        Self::hash(&(kind.group, kind.plural, "members", namespace, key))
    }

    fn hash(value: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The readers of each topic, and the topics of each reader.
#[derive(Default)]
pub(crate) struct Dependencies {
    readers: HashMap<Topic, Vec<Arc<Target>>>,
    topics: HashMap<Arc<Target>, Vec<Topic>>,
}

impl Dependencies {
    /// Subscribes the reader to the topic.
    pub(crate) fn add(&mut self, reader: &Arc<Target>, topic: Topic) {
        // A reader has a few topics; a topic may have thousands of readers.
        let topics = self.topics.entry(reader.clone()).or_default();
        if !topics.contains(&topic) {
            topics.push(topic);
            self.readers.entry(topic).or_default().push(reader.clone());
        }
    }

    /// Limits the reader's subscriptions to these topics.
    pub(crate) fn retain(&mut self, reader: &Arc<Target>, cached: &[Topic]) {
        let Some(topics) = self.topics.get_mut(reader) else { return };
        let (keep, drop): (Vec<Topic>, Vec<Topic>) = topics.iter().partition(|topic| cached.contains(topic));
        *topics = keep;
        topics.shrink_to_fit();
        if topics.is_empty() {
            self.topics.remove(reader);
        }
        for topic in drop {
            if let Some(readers) = self.readers.get_mut(&topic) {
                readers.retain(|other| other != reader);
                if readers.is_empty() {
                    self.readers.remove(&topic);
                }
            }
        }
    }

    /// How many subscriptions there are, of all readers.
    pub(crate) fn count(&self) -> usize {
        self.topics.values().map(Vec::len).sum()
    }

    pub(crate) fn readers(&self, topic: Topic) -> &[Arc<Target>] {
        self.readers.get(&topic).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };

    #[test]
    fn a_reader_is_unsubscribed_from_what_it_no_longer_reads() {
        let reader = Arc::new(Target { kind: KIND, namespace: "ns".into(), name: "reader".into() });
        let (old, new) = (Topic::name(KIND, "ns", "old"), Topic::name(KIND, "ns", "new"));
        let mut dependencies = Dependencies::default();
        dependencies.add(&reader, old);
        dependencies.add(&reader, new);
        dependencies.retain(&reader, &[new]);
        assert_eq!(dependencies.readers(old), []);
        assert_eq!(dependencies.readers(new), std::slice::from_ref(&reader));
        dependencies.retain(&reader, &[]);
        assert!(dependencies.readers.is_empty() && dependencies.topics.is_empty(), "nothing is left behind");
    }
}
