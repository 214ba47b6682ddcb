//! A client's session, with one session at each backend that it uses.

mod capabilities;
mod given_up;
mod links;
mod outbox;
mod presence;
mod record;
mod slot;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use skep_gateway::{identity::Owner, sessions::Kept};
use skep_mcp::{Era, List, Raw};
use tokio::sync::{Notify, oneshot};

use crate::{
    catalog::{Catalog, Entry, Lists},
    level::Level,
    limits,
};
pub(crate) use capabilities::AllCapabilities;
pub(crate) use links::{Cancellation, Cancelled, Links, Numbering};
pub(crate) use outbox::{Outbox, Queue};
pub(crate) use presence::{Presence, Present};
pub(crate) use record::Record;
pub(crate) use slot::{Ended, Opened};

/// A client's session.
pub(crate) struct ClientSession {
    era: Era,
    pub(crate) owner: Owner,
    /// The capabilities that the client declared, as JSON.
    pub(crate) capabilities: Arc<str>,
    /// Its sessions at backends.
    pub(crate) links: Links,
    /// Its stream of messages that belong to no request.
    pub(crate) outbox: Outbox,
    /// Held by the stream that relays what backends send by themselves.
    pub(crate) relaying: tokio::sync::Mutex<()>,
    /// What it subscribes to has changed.
    pub(crate) subscribed: Notify,
    /// What backends offer this caller may have changed.
    pub(crate) lists_changed: Notify,
    state: Mutex<State>,
    _present: Present,
}

#[derive(Default)]
struct State {
    /// The lowest level of log messages that the client wants.
    level: Option<Level>,
    subscriptions: BTreeSet<Box<str>>,
    /// The backends that the client has seen. They stay in its lists while they are unavailable.
    seen: BTreeSet<Arc<str>>,
    /// What backends offer this caller, where that may depend on the caller.
    own_lists: HashMap<Arc<str>, OwnLists>,
    /// Backends that could not be listed for this caller, by their names.
    unlisted: BTreeMap<Arc<str>, Unlisted>,
    /// The backends whose lists have been waited for.
    listed: Listed,
    /// What it saw last, and of which state of all backends, if that is still what it would see.
    catalog: Option<(Option<u64>, Arc<Catalog>)>,
    /// What the client was sent last of each list, or that it has changed.
    shown: [Option<Arc<Catalog>>; LISTS.len()],
    /// Requests of the virtual server to the client, by their ids.
    requests: HashMap<Box<str>, oneshot::Sender<Bytes>>,
}

/// Backends whose lists a session has waited for, also in vain.
enum Listed {
    These(BTreeSet<Arc<str>>),
    /// Those that come later follow with `list_changed`.
    All,
}

impl Default for Listed {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

/// A backend that could not be listed for one caller.
struct Unlisted {
    reason: String,
    /// Until when that is not tried again, if it took long.
    until: Option<Instant>,
}

/// What a backend offers one caller.
struct OwnLists {
    /// When that was read, unless the backend has announced others since.
    read: Option<Instant>,
    lists: Arc<Lists>,
}

/// All lists.
const LISTS: [List; 4] = [List::Tools, List::Prompts, List::Resources, List::ResourceTemplates];

/// The response of the client to a request of the virtual server.
pub(crate) struct Reply {
    session: Arc<ClientSession>,
    id: Box<str>,
    message: oneshot::Receiver<Bytes>,
}

impl Reply {
    /// Waits for it. None if it will not come.
    pub(crate) async fn message(&mut self) -> Option<Bytes> {
        (&mut self.message).await.ok()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.message.close();
        let mut state = self.session.state();
        // Another one may wait under the same id by now.
        if state.requests.get(&self.id).is_some_and(oneshot::Sender::is_closed) {
            state.requests.remove(&self.id);
        }
    }
}

/// A request of a client, for as long as it has no response: also if the client disconnects.
pub(crate) struct InFlight {
    session: Arc<ClientSession>,
    /// The id that the client gave it.
    id: Box<str>,
    /// What no other request of this replica has.
    pub(crate) number: u64,
    /// Its id at the backend, as it is spelled.
    pub(crate) there: Box<str>,
    pub(crate) cancellation: Arc<Cancellation>,
}

impl InFlight {
    /// Waits until the client cancels it.
    pub(crate) async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.session.links.end(&self.id, &self.cancellation);
    }
}

/// The client of a session.
pub(crate) struct Client {
    pub(crate) owner: Owner,
    pub(crate) era: Era,
    /// The capabilities that it declared, as JSON.
    pub(crate) capabilities: Arc<str>,
    /// The id of the session, if other replicas may use it.
    pub(crate) shared: Option<Box<str>>,
}

impl ClientSession {
    pub(crate) fn new(client: Client, ended: Ended, presence: &Presence) -> Self {
        let Client { owner, era, capabilities, shared } = client;
        Self {
            era,
            owner,
            capabilities: capabilities.clone(),
            links: Links::new(capabilities, era, shared, ended),
            outbox: Outbox::default(),
            relaying: tokio::sync::Mutex::default(),
            subscribed: Notify::new(),
            lists_changed: Notify::new(),
            state: Mutex::default(),
            _present: presence.enter(),
        }
    }

    /// What other replicas need to know of the session.
    pub(crate) fn record(&self) -> Record {
        Record {
            owner: self.owner,
            capabilities: self.capabilities.to_string(),
            level: self.level(),
            subscriptions: self.subscriptions(),
            given_up: self.links.given_up.to_text(),
            links: self.links.resumable_by_others(),
        }
    }

    /// Takes over what another replica has stored.
    pub(crate) fn update(&self, record: Record) {
        let mut state = self.state();
        state.level = record.level;
        state.subscriptions = record.subscriptions.into_iter().collect();
        drop(state);
        record.given_up.iter().for_each(|known| self.links.given_up.merge(known));
        self.links.set_resumable(record.links);
    }

    /// Records a request to a backend, so that it can be cancelled.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: &str,
        backend: &Arc<str>,
        number: u64,
        numbering: Numbering,
    ) -> InFlight {
        let (there, cancellation) = self.links.begin(id, backend, number, numbering);
        InFlight { session: self.clone(), id: id.into(), number, there, cancellation }
    }

    /// Records that a request in flight goes on as another one of the client.
    pub(crate) fn begin_again(self: &Arc<Self>, id: &str, backend: &Arc<str>, before: &InFlight) -> InFlight {
        let there = before.there.clone();
        let cancellation = self.links.begin_again(id, backend, &there);
        InFlight { session: self.clone(), id: id.into(), number: before.number, there, cancellation }
    }

    /// A backend may still respond to a request that has this id there. Returns whether other replicas must know that.
    pub(crate) fn give_up(&self, id: &str, there: &str) -> bool {
        let is_shared = self.links.shared_id(id).as_deref() == Some(there);
        if is_shared {
            self.links.given_up.add(id);
        }
        is_shared
    }

    /// Expects the response to a request with this id, as it is spelled.
    pub(crate) fn expect_reply(self: &Arc<Self>, id: &str) -> Reply {
        let (sender, message) = oneshot::channel();
        self.state().requests.insert(id.into(), sender);
        Reply { session: self.clone(), id: id.into(), message }
    }

    /// Expects no response to this request any more: who waits for it learns that none will come.
    pub(crate) fn forget_reply(&self, id: &str) {
        self.state().requests.remove(id);
    }

    /// Takes a response of the client. Returns whether it was expected.
    pub(crate) fn reply(&self, id: &str, message: &[u8]) -> bool {
        let sender = self.state().requests.remove(id);
        sender.is_some_and(|sender| sender.send(Bytes::copy_from_slice(message)).is_ok())
    }

    /// Whether the client has declared this capability.
    pub(crate) fn can(&self, capability: &str) -> bool {
        Raw::spelled(&self.capabilities).is_some_and(|declared| declared.get(capability).is_some())
    }

    /// Whether the client has its user fill in forms. Without modes, it does (MCP 2025-11-25, elicitation, capabilities).
    pub(crate) fn elicits_by_form(&self) -> bool {
        let modes = Raw::spelled(&self.capabilities).and_then(|declared| declared.get("elicitation"));
        modes.is_some_and(|modes| modes.get("form").is_some() || modes.get("url").is_none())
    }

    pub(crate) fn level(&self) -> Option<Level> {
        self.state().level
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.state().level = Some(level);
    }

    /// Remembers a subscription. Returns whether there was room for it.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let mut state = self.state();
        let has_room = uri.len() <= limits::URI
            && (state.subscriptions.len() < limits::SUBSCRIPTIONS || state.subscriptions.contains(uri));
        if has_room && state.subscriptions.insert(uri.into()) {
            drop(state);
            self.subscribed.notify_waiters();
        }
        has_room
    }

    /// Ends a subscription. Returns whether there was one.
    pub(crate) fn unsubscribe(&self, uri: &str) -> bool {
        let was_subscribed = self.state().subscriptions.remove(uri);
        if was_subscribed {
            self.subscribed.notify_waiters();
        }
        was_subscribed
    }

    /// Whether it has subscribed to this resource, or to one of which this is a part.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        let is_part = |whole: &str| {
            let rest = uri.strip_prefix(whole);
            rest.is_some_and(|rest| {
                rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#'])
            })
        };
        self.state().subscriptions.iter().any(|whole| is_part(whole))
    }

    pub(crate) fn subscriptions(&self) -> Vec<Box<str>> {
        self.state().subscriptions.iter().cloned().collect()
    }

    /// The subscriptions to resources of a backend.
    pub(crate) fn subscriptions_at(&self, backend: &str) -> Vec<Box<str>> {
        let Some(catalog) = self.last_catalog() else { return Vec::new() };
        let origin = |uri: &str| catalog.resource(uri).and_then(Entry::origin);
        let is_there = |uri: &str| origin(uri).is_some_and(|origin| *origin.backend == *backend);
        self.subscriptions().into_iter().filter(|uri| is_there(uri)).collect()
    }

    /// What the client saw in this state of all backends, if it has seen it.
    pub(crate) fn catalog(&self, epoch: u64) -> Option<Arc<Catalog>> {
        let state = self.state();
        state.catalog.as_ref().filter(|(seen, _)| *seen == Some(epoch)).map(|(_, catalog)| catalog.clone())
    }

    /// What the client saw last.
    pub(crate) fn last_catalog(&self) -> Option<Arc<Catalog>> {
        self.state().catalog.as_ref().map(|(_, catalog)| catalog.clone())
    }

    /// What the client was sent last of a list, if it was.
    pub(crate) fn shown(&self, list: List) -> Option<Arc<Catalog>> {
        let place = LISTS.iter().position(|one| *one == list)?;
        self.state().shown.get(place).cloned().flatten()
    }

    /// Remembers what the client is sent of a list, or that it has changed.
    pub(crate) fn show(&self, list: List, catalog: &Arc<Catalog>) {
        let mut state = self.state();
        let places = LISTS.iter().zip(&mut state.shown);
        for (_, shown) in places.into_iter().filter(|(one, _)| **one == list) {
            *shown = Some(catalog.clone());
        }
    }

    /// The same for all lists, of a client that was sent them elsewhere.
    pub(crate) fn show_all(&self, catalog: impl Fn(List) -> Arc<Catalog>) {
        LISTS.iter().for_each(|list| self.show(*list, &catalog(*list)));
    }

    /// What a backend offers this caller, as far as that is known.
    pub(crate) fn own_lists(&self, backend: &str) -> Option<Arc<Lists>> {
        self.state().own_lists.get(backend).map(|own| own.lists.clone())
    }

    /// Whether that is not known, or was read too long ago. A backend that took long to fail is left alone for a while.
    pub(crate) fn needs_own_lists(&self, backend: &str) -> bool {
        let state = self.state();
        let read = state.own_lists.get(backend).and_then(|own| own.read);
        let until = state.unlisted.get(backend).and_then(|unlisted| unlisted.until);
        read.is_none_or(|read| read.elapsed() >= limits::OWN_LISTS_AGE)
            && until.is_none_or(|until| Instant::now() >= until)
    }

    /// Whether it was tried to read that.
    pub(crate) fn has_tried_to_list(&self, backend: &str) -> bool {
        let state = self.state();
        state.own_lists.contains_key(backend) || state.unlisted.contains_key(backend)
    }

    /// Whether the lists of this backend have been waited for.
    pub(crate) fn has_listed(&self, backend: &str) -> bool {
        match &self.state().listed {
            Listed::These(backends) => backends.contains(backend),
            Listed::All => true,
        }
    }

    pub(crate) fn has_listed_all(&self) -> bool {
        matches!(self.state().listed, Listed::All)
    }

    pub(crate) fn have_listed(&self, backend: &Arc<str>) {
        if let Listed::These(backends) = &mut self.state().listed {
            backends.insert(backend.clone());
        }
    }

    pub(crate) fn have_listed_all(&self) {
        self.state().listed = Listed::All;
    }

    /// Whether the backend has announced others since they were read.
    pub(crate) fn has_expired_lists(&self, backend: &str) -> bool {
        self.state().own_lists.get(backend).is_some_and(|own| own.read.is_none())
    }

    pub(crate) fn set_own_lists(&self, backend: &Arc<str>, lists: Arc<Lists>) {
        let mut state = self.state();
        let own = OwnLists { read: Some(Instant::now()), lists: lists.clone() };
        let before = state.own_lists.insert(backend.clone(), own);
        state.unlisted.remove(backend);
        if before.is_none_or(|before| before.lists != lists) {
            state.catalog = state.catalog.take().map(|(_, catalog)| (None, catalog));
            drop(state);
            self.lists_changed.notify_one();
        }
    }

    pub(crate) fn set_unlisted(&self, backend: &Arc<str>, reason: String, took: Duration) {
        let until = (took >= limits::SLOW_FAILURE).then(|| Instant::now() + limits::UNLISTED_PAUSE);
        self.state().unlisted.insert(backend.clone(), Unlisted { reason, until });
    }

    /// The end of a sentence that something is unknown: a backend that could not be listed may have it.
    pub(crate) fn unlisted(&self) -> String {
        let state = self.state();
        let reasons = state.unlisted.iter();
        reasons
            .map(|(backend, Unlisted { reason, .. })| {
                format!("; backend {backend} could not be listed: {reason}")
            })
            .collect()
    }

    /// Has what a backend offers this caller read again.
    pub(crate) fn expire_own_lists(&self, backend: &str) {
        if let Some(own) = self.state().own_lists.get_mut(backend) {
            own.read = None;
            self.lists_changed.notify_one();
        }
    }

    /// Whether it was shown the backend. Clients of 2026-07-28 have no session that could remember it: each of their requests is a
    /// new one.
    pub(crate) fn has_seen(&self, backend: &str) -> bool {
        self.era == Era::Legacy && self.state().seen.contains(backend)
    }

    pub(crate) fn pin(&self, backends: impl Iterator<Item = Arc<str>>) {
        self.state().seen.extend(backends);
    }

    pub(crate) fn see(&self, epoch: u64, catalog: Arc<Catalog>, backends: impl Iterator<Item = Arc<str>>) {
        let mut state = self.state();
        state.seen.extend(backends);
        state.catalog = Some((Some(epoch), catalog));
    }

    /// Sends a message that belongs to no request, if the client listens.
    pub(crate) fn send(&self, message: Bytes) {
        self.outbox.send(message);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session among all sessions.
#[derive(Clone)]
pub(crate) struct Known(pub(crate) Arc<ClientSession>);

impl Kept for Known {
    fn owner(&self) -> Option<Owner> {
        Some(self.0.owner)
    }

    /// Its capabilities are shared, and bounded.
    fn bytes(&self) -> usize {
        0
    }

    fn shed(&mut self) {}
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::catalog::list_page;

    fn session() -> Arc<ClientSession> {
        let (ended, _ending) = Ended::new();
        let client =
            Client { owner: Owner::ANONYMOUS, era: Era::Legacy, capabilities: "{}".into(), shared: None };
        Arc::new(ClientSession::new(client, ended, &Presence::new()))
    }

    #[test]
    fn lists_of_a_caller_that_are_read_again_wake_its_stream_only_if_they_differ() {
        let session = session();
        let is_woken = || session.lists_changed.notified().now_or_never().is_some();
        let backend: Arc<str> = "a".into();
        let lists = |name: &str| {
            let page = format!(r#"{{"tools":[{{"name":"{name}"}}]}}"#);
            let mut lists = Lists::default();
            *lists.of_mut(List::Tools) = list_page(Raw::spelled(&page).unwrap(), List::Tools).unwrap();
            Arc::new(lists)
        };
        assert!(session.needs_own_lists("a"));
        session.set_own_lists(&backend, lists("one"));
        assert!(is_woken() && !session.needs_own_lists("a"));
        session.expire_own_lists("a");
        assert!(is_woken() && session.needs_own_lists("a") && session.has_expired_lists("a"));
        assert_eq!(session.own_lists("a"), Some(lists("one")), "until others are read, they are shown");
        session.set_own_lists(&backend, lists("one"));
        assert!(!is_woken());
        session.set_own_lists(&backend, lists("two"));
        assert!(is_woken());
    }

    #[test]
    fn a_request_whose_client_disconnects_is_no_longer_in_flight() {
        let session = session();
        let request = session.begin("1", &"a".into(), 7, Numbering::Shared);
        let cancelled = session.links.cancel("1").unwrap();
        assert_eq!((&*cancelled.backend, &*cancelled.id), ("a", "7"));
        drop(request);
        assert!(session.links.cancel("1").is_none());
    }
}
