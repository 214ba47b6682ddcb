//! The sessions of the bridge.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, de::IgnoredAny};
use skep_gateway::identity::Owner;
use skep_mcp::{Envelope, Method};

use super::{inflight::SessionKey, level::Level, outbox::Outbox};
use crate::limits;

/// One session.
pub(super) struct Member {
    /// Who started the session. No other caller may use it, even one that knows its id.
    pub(super) owner: Owner,
    /// Where messages go that belong to no request.
    pub(super) stream: Option<Outbox>,
    pub(super) subscriptions: BTreeSet<Box<str>>,
    pub(super) level: Option<Level>,
    pub(super) abilities: Abilities,
}

impl Member {
    pub(super) fn new(owner: Owner, abilities: Abilities) -> Self {
        Self { owner, stream: None, subscriptions: BTreeSet::new(), level: None, abilities }
    }
}

/// The capabilities of a client, by its `initialize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    sampling: bool,
    elicitation: bool,
    roots: bool,
}

impl Abilities {
    /// Those that an `initialize` names.
    pub(super) fn of(initialize: &Envelope<'_>) -> Self {
        #[derive(Default, Deserialize)]
        struct Params {
            #[serde(default)]
            capabilities: Capabilities,
        }
        #[derive(Default, Deserialize)]
        struct Capabilities {
            sampling: Option<IgnoredAny>,
            elicitation: Option<IgnoredAny>,
            roots: Option<IgnoredAny>,
        }
        let params = initialize.params().and_then(|raw| serde_json::from_str::<Params>(raw.as_str()).ok());
        let Capabilities { sampling, elicitation, roots } = params.unwrap_or_default().capabilities;
        Self { sampling: sampling.is_some(), elicitation: elicitation.is_some(), roots: roots.is_some() }
    }

    /// Whether a client with these supports this request.
    pub(super) fn include(self, method: Method) -> bool {
        match method {
            Method::SamplingCreateMessage => self.sampling,
            Method::ElicitationCreate => self.elicitation,
            Method::RootsList => self.roots,
            // An extension, for example, which the client may know.
            _ => true,
        }
    }
}

/// All sessions, and the subscribers of resources.
#[derive(Default)]
pub(super) struct Members {
    all: HashMap<SessionKey, Member>,
    subscribers: HashMap<Box<str>, BTreeSet<SessionKey>>,
}

impl Members {
    pub(super) fn insert(&mut self, session: SessionKey, member: Member) {
        self.all.insert(session, member);
    }

    pub(super) fn get(&self, session: &str) -> Option<&Member> {
        self.all.get(session)
    }

    pub(super) fn get_mut(&mut self, session: &str) -> Option<&mut Member> {
        self.all.get_mut(session)
    }

    pub(super) fn keys(&self) -> Vec<SessionKey> {
        self.all.keys().cloned().collect()
    }

    /// The only session, if there is one only.
    pub(super) fn only(&self) -> Option<SessionKey> {
        let mut keys = self.all.keys();
        keys.next().filter(|_| keys.next().is_none()).cloned()
    }

    /// Ends a session, and returns the resources without subscribers.
    pub(super) fn remove(&mut self, session: &str) -> Vec<Box<str>> {
        let Some(member) = self.all.remove(session) else { return Vec::new() };
        member.subscriptions.into_iter().filter(|uri| self.release(session, uri)).collect()
    }

    /// Subscribes a session, if it has not ended.
    pub(super) fn subscribe(&mut self, session: &SessionKey, uri: &str) {
        if let Some(member) = self.all.get_mut(session) {
            member.subscriptions.insert(uri.into());
            self.subscribers.entry(uri.into()).or_default().insert(session.clone());
        }
    }

    /// Whether one more subscription can be remembered.
    pub(super) fn has_room(&self, session: &str, uri: &str) -> bool {
        let of_session = self.all.get(session).map_or(0, |member| member.subscriptions.len());
        uri.len() <= limits::SUBSCRIPTION
            && of_session < limits::SESSION_SUBSCRIPTIONS
            && (self.subscribers.len() < limits::SUBSCRIPTIONS || self.subscribers.contains_key(uri))
    }

    /// Ends a subscription, and returns whether the server must be notified: if no other session has it.
    pub(super) fn unsubscribe(&mut self, session: &str, uri: &str) -> bool {
        if let Some(member) = self.all.get_mut(session) {
            member.subscriptions.remove(uri);
        }
        self.release(session, uri)
    }

    /// Whether a session is subscribed to this resource.
    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscribers.contains_key(uri)
    }

    /// The resources that the server watches.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.subscribers.keys().map(AsRef::as_ref)
    }

    /// The subscribers of this resource, and of those that contain it.
    pub(super) fn subscribers(&self, updated: &str) -> BTreeSet<SessionKey> {
        let parents = updated.match_indices('/').flat_map(|(at, _)| [&updated[..at], &updated[..=at]]);
        let names = parents.chain([updated]);
        names.filter_map(|name| self.subscribers.get(name)).flatten().cloned().collect()
    }

    /// The sessions that want log messages from some level on.
    pub(super) fn listeners(&self) -> impl Iterator<Item = (&SessionKey, Level)> {
        self.all.iter().filter_map(|(session, member)| Some((session, member.level?)))
    }

    fn release(&mut self, session: &str, uri: &str) -> bool {
        let Some(sessions) = self.subscribers.get_mut(uri) else { return true };
        sessions.remove(session);
        let is_unused = sessions.is_empty();
        if is_unused {
            self.subscribers.remove(uri);
        }
        is_unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_of_a_part_concerns_the_subscribers_of_the_whole() {
        let mut members = Members::default();
        let session: SessionKey = "s".into();
        members.insert(session.clone(), Member::new(Owner::ANONYMOUS, Abilities::default()));
        members.subscribe(&session, "file:///a");
        for (updated, concerned) in
            [("file:///a", true), ("file:///a/b/c", true), ("file:///ab", false), ("file:///", false)]
        {
            assert_eq!(members.subscribers(updated).contains(&session), concerned, "{updated}");
        }
        assert_eq!(members.remove("s"), [Box::<str>::from("file:///a")]);
        assert!(!members.is_subscribed("file:///a"));
    }
}
