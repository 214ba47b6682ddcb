//! The replacement of a refresh token. It is undone if the client has disconnected before it got the new one: it sends the old one again
//! then, which would end its session.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;
use tracing::debug;

use crate::store::{Grant, Result, Rotation, Store, StoreError};

/// A replacement, which is undone if it is dropped before its response is on its way.
pub(crate) struct Replacement(Option<Undo>);

/// What makes the old token valid again.
struct Undo {
    store: Arc<dyn Store>,
    tokens: Tokens,
    before: Grant,
}

/// The signatures of both tokens.
#[derive(Clone)]
pub(crate) struct Tokens {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) life: Duration,
    /// The time, in milliseconds since 1970.
    pub(crate) at: u64,
}

impl Replacement {
    /// Replaces the token, to the end also if the client disconnects meanwhile. `before` and `after` are the grant.
    pub(crate) async fn make(
        store: Arc<dyn Store>,
        tokens: Tokens,
        before: Grant,
        after: Grant,
    ) -> Result<(Rotation, Self)> {
        let made = tokio::spawn(async move {
            let Tokens { old, new, life, at } = &tokens;
            let rotation = store.rotate(old, new, &after, *life, *at).await?;
            let undo = (rotation == Rotation::Done).then_some(Undo { store, tokens, before });
            Ok((rotation, Self(undo)))
        });
        made.await.unwrap_or(Err(StoreError::Unavailable))
    }

    /// The response is on its way: from now on the new token is the valid one.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }

    /// The same as dropping it, which does not wait.
    #[cfg(test)]
    pub(crate) async fn undo(mut self) {
        if let Some(undo) = self.0.take() {
            undo.run().await;
        }
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(undo.run());
        }
    }
}

impl Undo {
    async fn run(self) {
        let Tokens { old, new, life, at } = &self.tokens;
        let undone = self.store.rotate(new, old, &self.before, *life, *at).await;
        debug!(?undone, "a client has disconnected while it refreshed: its refresh token stays valid");
    }
}
