//! The requests that the server has not responded to yet.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use skep_gateway::{identity::Holder, sessions::Shares};
use skep_mcp::Rejection;
use tokio::time::Instant;

use super::{level::Level, outbox::Outbox};
use crate::limits;

/// How many requests in flight one caller may have.
const SHARES: Shares =
    Shares { caller: limits::STDIO_REQUESTS_OF_A_CALLER, address: limits::STDIO_REQUESTS_OF_AN_ADDRESS };

/// A session, by its id.
pub(super) type SessionKey = Arc<str>;

/// A request in flight. For the server, its id is a number that the bridge assigns.
pub(super) struct Pending {
    /// The session that it is in. Since 2026-07-28 requests are in none.
    pub(super) session: Option<SessionKey>,
    /// Whose requests are counted.
    pub(super) holder: Option<Holder>,
    /// The client's id, as it is spelt.
    pub(super) id: Box<[u8]>,
    /// The client's progress token, as it is spelt.
    pub(super) token: Option<Box<str>>,
    /// What the request changes in the bridge when it succeeds.
    pub(super) effect: Effect,
    /// Whether the response can carry other messages to the client.
    pub(super) carries: Carries,
    pub(super) reply: Outbox,
    pub(super) pulse: Arc<Pulse>,
}

/// What a request changes in the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// The session is subscribed to this resource.
    Subscribed(Box<str>),
    /// The session wants log messages from this level on.
    Level(Level),
}

/// What the response to a request can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carries {
    /// The response alone.
    Answer,
    /// Messages before it.
    Stream,
}

/// When the server last showed that it processes a request.
pub(super) struct Pulse {
    last: Mutex<Instant>,
    /// How many requests of the server the client has to answer first.
    server_requests: AtomicUsize,
}

impl Pulse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { last: Mutex::new(Instant::now()), server_requests: AtomicUsize::new(0) })
    }

    /// The server has reported progress.
    pub(super) fn beat(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When the server was last known to process the request, which it does while it waits for the client.
    pub(super) fn last(&self) -> Instant {
        if self.server_requests.load(Ordering::Relaxed) > 0 {
            return Instant::now();
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_server_request(&self) {
        self.server_requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_server_request(&self) {
        self.server_requests.fetch_sub(1, Ordering::Relaxed);
        self.beat();
    }
}

/// All requests in flight.
#[derive(Default)]
pub(super) struct Inflight {
    requests: HashMap<u64, Pending>,
    by_session: HashMap<SessionKey, BTreeSet<u64>>,
    /// How many each caller has, in a session or not.
    by_holder: HashMap<Holder, usize>,
    /// Those whose client has left, while the server may still process them: what it sends then is not for others.
    abandoned: HashMap<u64, Abandoned>,
}

struct Abandoned {
    session: Option<SessionKey>,
    /// The client's id, as it is spelled, unless it is long: the client may still cancel the request.
    id: Option<Box<[u8]>>,
    /// When the server certainly processes it no longer.
    until: Instant,
}

/// The sessions of the requests in flight.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum From {
    None,
    /// All of one session.
    Session(SessionKey),
    /// The only one is of no session.
    Request(u64),
    Several,
}

impl Inflight {
    pub(super) fn insert(&mut self, number: u64, pending: Pending) -> Result<(), Rejection> {
        if self.requests.len() >= limits::STDIO_REQUESTS {
            return Err(Rejection::Unavailable("room for one more request is"));
        }
        let of_holder = pending.holder.and_then(|holder| self.by_holder.get(&holder)).copied().unwrap_or(0);
        if pending.holder.is_some_and(|holder| of_holder >= SHARES.of(holder)) {
            return Err(Rejection::Unavailable("room for one more request of this caller is"));
        }
        if let Some(session) = &pending.session {
            let of_session = self.by_session.entry(session.clone()).or_default();
            if of_session.len() >= limits::SESSION_REQUESTS {
                return Err(Rejection::Unavailable("room for one more request of this session is"));
            }
            of_session.insert(number);
        }
        if let Some(holder) = pending.holder {
            self.by_holder.insert(holder, of_holder + 1);
        }
        self.requests.insert(number, pending);
        Ok(())
    }

    pub(super) fn get(&self, number: u64) -> Option<&Pending> {
        self.requests.get(&number)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Pending> {
        let pending = self.requests.remove(&number)?;
        if let Some(session) = &pending.session
            && let Some(numbers) = self.by_session.get_mut(session)
        {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_session.remove(session);
            }
        }
        if let Some(holder) = pending.holder
            && let Some(count) = self.by_holder.get_mut(&holder)
        {
            *count -= 1;
            if *count == 0 {
                self.by_holder.remove(&holder);
            }
        }
        Some(pending)
    }

    /// Removes one whose client has left. The server may process it for as long as `time`, unless it responds before.
    pub(super) fn abandon(&mut self, number: u64, time: Duration) -> Option<Pending> {
        let pending = self.remove(number)?;
        let now = Instant::now();
        if self.abandoned.len() >= limits::STDIO_REQUESTS {
            self.abandoned.retain(|_, abandoned| abandoned.until > now);
        }
        if self.abandoned.len() < limits::STDIO_REQUESTS {
            let session = pending.session.clone();
            let id = (pending.id.len() <= limits::ABANDONED_ID).then(|| pending.id.clone());
            self.abandoned.insert(number, Abandoned { session, id, until: now + time });
        }
        Some(pending)
    }

    /// The server is to stop processing what a session has abandoned, and may do so for as long as `time`. Returns what that is.
    pub(super) fn hasten(&mut self, session: &str, time: Duration) -> Vec<u64> {
        let until = Instant::now() + time;
        let of_session = |abandoned: &Abandoned| abandoned.session.as_deref() == Some(session);
        let later = self.abandoned.iter_mut().filter(|(_, other)| of_session(other) && other.until > until);
        later
            .map(|(number, abandoned)| {
                abandoned.until = until;
                *number
            })
            .collect()
    }

    /// The server is to stop processing the newest request with this id that a session has abandoned, and may do so for as long as
    /// `time`. Returns its number, once.
    pub(super) fn cancel_abandoned(
        &mut self,
        session: &str,
        is_id: impl Fn(&[u8]) -> bool,
        time: Duration,
    ) -> Option<u64> {
        let until = Instant::now() + time;
        let is_meant = |other: &Abandoned| {
            other.session.as_deref() == Some(session)
                && other.until > until
                && other.id.as_deref().is_some_and(&is_id)
        };
        let meant = self.abandoned.iter_mut().filter(|(_, other)| is_meant(other));
        let (number, abandoned) = meant.max_by_key(|(number, _)| **number)?;
        abandoned.until = until;
        Some(*number)
    }

    /// The server has responded to one that may have been abandoned.
    pub(super) fn forget(&mut self, number: u64) {
        self.abandoned.remove(&number);
    }

    /// All of them, of which none is left.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Pending> {
        self.by_session.clear();
        self.by_holder.clear();
        self.abandoned.clear();
        std::mem::take(&mut self.requests).into_values()
    }

    /// Those of a session, the newest first.
    pub(super) fn of(&self, session: &str) -> impl Iterator<Item = (u64, &Pending)> {
        let numbers = self.by_session.get(session).into_iter().flatten().rev();
        numbers.filter_map(|number| Some((*number, self.requests.get(number)?)))
    }

    /// Their sessions. What is abandoned counts, or one client would get the messages for another that has left.
    pub(super) fn from(&self) -> From {
        let now = Instant::now();
        // There may be more, of sessions that are not known.
        if self.abandoned.len() >= limits::STDIO_REQUESTS {
            return From::Several;
        }
        let mut abandoned = self.abandoned.values().filter(|abandoned| abandoned.until > now);
        match self.present() {
            From::Session(session) if abandoned.any(|other| other.session.as_ref() != Some(&session)) => {
                From::Several
            }
            From::None | From::Request(_) if abandoned.next().is_some() => From::Several,
            from => from,
        }
    }

    fn present(&self) -> From {
        let of_sessions: usize = match self.by_session.len() {
            0 => 0,
            1 => self.by_session.values().map(BTreeSet::len).sum(),
            _ => return From::Several,
        };
        match (self.requests.len(), self.by_session.keys().next()) {
            (0, _) => From::None,
            (all, Some(session)) if all == of_sessions => From::Session(session.clone()),
            (1, None) => self.requests.keys().next().map_or(From::None, |number| From::Request(*number)),
            _ => From::Several,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stdio::outbox::outbox;

    fn pending(session: &str) -> Pending {
        Pending {
            session: Some(session.into()),
            holder: None,
            id: (*b"1").into(),
            token: None,
            effect: Effect::Nothing,
            carries: Carries::Stream,
            reply: outbox(None).0,
            pulse: Pulse::new(),
        }
    }

    #[test]
    fn a_caller_leaves_room_for_others_with_and_without_sessions() {
        let mut inflight = Inflight::default();
        let holder = |last: u8| Some(Holder::new(None, [10, 0, 0, last].into()));
        let of = |last: u8, session: Option<u64>| Pending {
            session: session.map(|number| number.to_string().into()),
            holder: holder(last),
            ..pending("")
        };
        let all = limits::STDIO_REQUESTS_OF_AN_ADDRESS as u64;
        for number in 0..all {
            // In none, or in very many.
            inflight.insert(number, of(1, (number % 2 == 0).then_some(number))).unwrap();
        }
        assert!(inflight.insert(all, of(1, None)).is_err());
        assert!(inflight.insert(all, of(1, Some(all))).is_err());
        inflight.insert(all, of(2, None)).unwrap();
        inflight.remove(0);
        inflight.insert(0, of(1, None)).unwrap();
        for number in 0..=all {
            inflight.remove(number);
        }
        assert!(inflight.by_holder.is_empty());
    }

    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[tokio::test(start_paused = true)]
    async fn what_is_abandoned_counts_until_it_is_answered_or_over() {
        let mut inflight = Inflight::default();
        inflight.insert(1, pending("a")).unwrap();
        inflight.insert(2, pending("b")).unwrap();
        inflight.abandon(1, HOUR);
        assert_eq!(inflight.from(), From::Several);
        inflight.forget(1);
        assert_eq!(inflight.from(), From::Session("b".into()));
        inflight.insert(3, pending("a")).unwrap();
        inflight.abandon(3, Duration::from_secs(5));
        assert_eq!(inflight.from(), From::Several);
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(inflight.from(), From::Session("b".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_ended_session_has_abandoned_is_soon_over() {
        let mut inflight = Inflight::default();
        inflight.insert(1, pending("a")).unwrap();
        inflight.insert(2, pending("b")).unwrap();
        inflight.abandon(1, HOUR);
        assert_eq!(inflight.hasten("b", limits::CANCEL_TIME), [0; 0]);
        assert_eq!(inflight.hasten("a", limits::CANCEL_TIME), [1]);
        assert_eq!(inflight.hasten("a", limits::CANCEL_TIME), [0; 0], "it is cancelled once");
        assert_eq!(inflight.from(), From::Several);
        tokio::time::advance(limits::CANCEL_TIME * 2).await;
        assert_eq!(inflight.from(), From::Session("b".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_request_is_cancelled_once() {
        let mut inflight = Inflight::default();
        for number in [1, 2] {
            inflight.insert(number, pending("a")).unwrap();
            inflight.abandon(number, HOUR);
        }
        let cancel = |inflight: &mut Inflight, session, id: &[u8]| {
            inflight.cancel_abandoned(session, |known| known == id, limits::CANCEL_TIME)
        };
        assert_eq!(cancel(&mut inflight, "b", b"1"), None);
        assert_eq!(cancel(&mut inflight, "a", b"2"), None);
        assert_eq!([(); 3].map(|()| cancel(&mut inflight, "a", b"1")), [Some(2), Some(1), None]);
    }

    /// A client that abandons very many requests must not make the bridge forget those of others.
    #[tokio::test(start_paused = true)]
    async fn a_flood_of_abandoned_requests_brings_no_messages_of_others() {
        let mut inflight = Inflight::default();
        let flood = u64::try_from(limits::STDIO_REQUESTS).unwrap();
        for number in 0..flood {
            inflight.insert(number, pending("attacker")).unwrap();
            inflight.abandon(number, HOUR);
        }
        inflight.insert(flood, pending("victim")).unwrap();
        inflight.abandon(flood, HOUR);
        inflight.insert(flood + 1, pending("attacker")).unwrap();
        assert_eq!(inflight.from(), From::Several, "it may be for the victim");
        tokio::time::advance(HOUR * 2).await;
        inflight.abandon(flood + 1, HOUR);
        inflight.insert(flood + 2, pending("attacker")).unwrap();
        assert_eq!(inflight.from(), From::Session("attacker".into()), "all of it is over");
    }
}
