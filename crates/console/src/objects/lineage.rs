//! Which object something was created for, by the UIDs of its owners. Names do not show that: the pod `web-db-0` may belong to
//! `web-db`, to `web`, or to neither.

use std::collections::{HashMap, VecDeque};

use super::Key;
use crate::limits;

/// What owns something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// An object of the API.
    Object(Key),
    /// Something else, by its UID.
    Uid(String),
}

/// A Deployment owns ReplicaSets, and these own pods.
const DEPTH: usize = 3;

/// The owner of each thing, by its UID.
#[derive(Default)]
pub(super) struct Lineage {
    owners: HashMap<String, Owner>,
    /// What does not exist any more, oldest first. Events about it may come later.
    former: VecDeque<String>,
}

impl Lineage {
    pub(super) fn add(&mut self, uid: &str, owner: Owner) {
        self.owners.insert(uid.to_owned(), owner);
    }

    pub(super) fn end(&mut self, uid: &str) {
        if !self.owners.contains_key(uid) {
            return;
        }
        self.former.push_back(uid.to_owned());
        if self.former.len() > limits::FORMER
            && let Some(first) = self.former.pop_front()
        {
            self.owners.remove(&first);
        }
    }

    /// The object that this was created for.
    pub(super) fn object(&self, uid: &str) -> Option<&Key> {
        let mut uid = uid;
        for _ in 0..DEPTH {
            match self.owners.get(uid)? {
                Owner::Object(key) => return Some(key),
                Owner::Uid(owner) => uid = owner,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_belongs_to_the_object_at_the_end_of_its_owners() {
        let mut lineage = Lineage::default();
        lineage.add("pod", Owner::Uid("set".into()));
        assert_eq!(lineage.object("pod"), None);
        lineage.add("deployment", Owner::Object(Key::new("MCPServer", "n", "a")));
        lineage.add("set", Owner::Uid("deployment".into()));
        assert_eq!(lineage.object("pod").map(|key| key.name.as_str()), Some("a"));
        assert_eq!(lineage.object("other"), None);
        lineage.add("circle", Owner::Uid("circle".into()));
        assert_eq!(lineage.object("circle"), None);
    }

    #[test]
    fn what_has_ended_is_known_for_a_while_and_not_for_ever() {
        let mut lineage = Lineage::default();
        for number in 0..=limits::FORMER {
            lineage.add(&number.to_string(), Owner::Object(Key::new("MCPServer", "n", "a")));
            lineage.end(&number.to_string());
        }
        assert!(lineage.object("0").is_none() && lineage.object("1").is_some());
        assert_eq!(lineage.owners.len(), limits::FORMER);
        // What belongs to nothing takes no place of theirs.
        lineage.end("other");
        assert!(lineage.object("1").is_some());
    }
}
