//! Calls that wait for input of a client of 2026-07-28, which sends its request again with it.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use skep_gateway::{
    identity::Owner,
    sessions::{Full, Kept, Memory},
};
use skep_mcp::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Relay, input::BackendRequest};
use crate::{
    front::{
        call_digest::CallDigest,
        own::{NeededInput, OwnCall},
    },
    limits,
};

/// All calls that wait for input. Each belongs to one caller, and waits for a while only.
pub(crate) struct ParkedCalls {
    calls: Memory<Parked>,
    /// Each holds a connection to its backend.
    room: Arc<Semaphore>,
}

/// A call, and what it needs.
pub(in crate::front) enum Waiting {
    /// Its backend needs something.
    Backend(Box<(Relay, BackendRequest)>),
    /// A call that it makes does.
    Own(Box<OwnCall>, NeededInput),
}

/// The call that waits is not the one that the request makes.
pub(super) struct OtherCall;

#[derive(Clone)]
struct Parked {
    owner: Owner,
    digest: CallDigest,
    call: Arc<Mutex<Option<Waiting>>>,
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Kept for Parked {
    fn owner(&self) -> Option<Owner> {
        Some(self.owner)
    }

    fn bytes(&self) -> usize {
        0
    }

    fn shed(&mut self) {}

    /// It cannot go on at another replica, either: a caller would have as many there as it likes.
    fn evict(&self) {
        let waiting = self.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Waiting::Own(call, _)) = waiting {
            call.forget();
        }
    }
}

impl ParkedCalls {
    pub(crate) fn new() -> Self {
        let calls = Memory::with_shares(limits::INPUT_TIME, limits::PARKED_CALLS_OF_ONE);
        Self { calls, room: Arc::new(Semaphore::new(limits::PARKED_CALLS)) }
    }

    /// Keeps a call, with which its client can go on by this state.
    pub(in crate::front) fn park(
        &self,
        state: &SessionId,
        waiting: Waiting,
        (owner, digest): (Owner, CallDigest),
        peer: IpAddr,
    ) -> Result<(), Full> {
        let permit = self.room.clone().try_acquire_owned().map_err(|_| Full)?;
        let call = Arc::new(Mutex::new(Some(waiting)));
        self.calls.put(state.as_str(), Parked { owner, digest, call, _permit: Arc::new(permit) }, peer)
    }

    /// The call that waits under this state, if it belongs to the caller. Policies have decided about the request that goes on with
    /// it, which must be the same call.
    pub(super) fn take(
        &self,
        state: &str,
        owner: Owner,
        digest: CallDigest,
    ) -> Result<Option<Waiting>, OtherCall> {
        let Some(parked) = self.calls.get(state).filter(|parked| parked.owner == owner) else {
            return Ok(None);
        };
        if parked.digest != digest {
            return Err(OtherCall);
        }
        self.calls.remove(state);
        Ok(parked.call.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// Ends calls whose clients do not return, for ever.
    pub(crate) async fn expire(&self) {
        self.calls.expire().await;
    }
}
