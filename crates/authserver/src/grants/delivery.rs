//! The way of tokens to a client. What they were issued for, a code or a refresh token, stays usable until they are on their way:
//! a client that gets no response sends its request again. It gets the same refresh token then.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::{
    AuthServer, limits,
    store::{Result, Store},
};

/// How often the store is told that tokens are on their way, if it does not respond, and the pause between two times.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Codes and refresh tokens that are being exchanged by this process.
#[derive(Default)]
pub(crate) struct InFlight(Arc<Mutex<HashSet<String>>>);

/// A code or refresh token that is being exchanged, until this is dropped.
pub(crate) struct Exchanged {
    all: Arc<Mutex<HashSet<String>>>,
    key: String,
}

impl InFlight {
    /// Begins to exchange something. `None`: another request does.
    pub(crate) fn begin(&self, key: &str) -> Option<Exchanged> {
        let is_first = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
        is_first.then(|| Exchanged { all: self.0.clone(), key: key.to_owned() })
    }
}

impl Drop for Exchanged {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// Tokens that were issued, and are not on their way yet.
pub(crate) struct Undelivered {
    spent: Spent,
    exchanged: Exchanged,
}

/// What tokens were issued for.
pub(crate) enum Spent {
    Code { signature: String },
    Refresh { new: String, session: String },
}

impl Undelivered {
    pub(super) fn new(spent: Spent, exchanged: Exchanged) -> Self {
        Self { spent, exchanged }
    }
}

impl AuthServer {
    /// The tokens are on their way. The client waits until the store knows that, but not for long: at worst, what they were
    /// issued for stays usable for whoever has it and can prove the same as this client.
    pub(crate) async fn deliver(&self, undelivered: Undelivered) {
        let Undelivered { spent, exchanged } = undelivered;
        let store = self.store.clone();
        let told = tokio::spawn(async move {
            for _ in 0..TRIES {
                if spent.tell(&*store).await.is_ok() {
                    return;
                }
                sleep(PAUSE).await;
            }
            warn!("the store does not know that tokens were issued: they can be requested again");
        });
        timeout(limits::DELIVERY_TIME, told).await.ok();
        drop(exchanged);
    }
}

impl Spent {
    async fn tell(&self, store: &dyn Store) -> Result<()> {
        match self {
            Self::Code { signature } => store.spend_code(signature).await,
            Self::Refresh { new, session } => store.deliver(new, session).await,
        }
    }
}
