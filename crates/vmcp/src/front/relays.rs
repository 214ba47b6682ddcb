//! What backends send by themselves, on its way to a client that listens.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Instant};

use bytes::Bytes;
use skep_mcp::{Envelope, Era, Message, Method};
use tokio::sync::watch;
use tracing::debug;

use super::{
    AbortOnDrop, Front,
    announce::Listener,
    from_backend::{for_client, for_session, readdressed, retagged, withdrawn},
    questions::Question,
};
use crate::{
    backend::{Backend, BackendError, Interest, Link, Place},
    limits,
    session::ClientSession,
};

impl Front {
    /// Relays what all backends send by themselves in the sessions of a client, until its stream has ended or the handle is dropped.
    pub(super) fn relay_all(
        self: &Arc<Self>,
        listener: &Arc<Listener>,
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> AbortOnDrop {
        let (front, listener) = (self.clone(), listener.clone());
        let relays = tokio::spawn(async move {
            // A backend may have one stream for each session.
            let _turn = listener.session.relaying.lock().await;
            tokio::select! {
                () = front.run_relays(&listener) => {}
                () = ended => {}
            }
        });
        AbortOnDrop(relays.abort_handle())
    }

    async fn run_relays(self: &Arc<Self>, listener: &Arc<Listener>) {
        let session = &listener.session;
        // It must be known where resources are that the client has subscribed to, maybe at another replica.
        if !session.subscriptions().is_empty() {
            self.views.catalog(session, &listener.caller).await;
        }
        let (mut opened, mut changes) = (session.links.changes(), self.views.changes());
        let mut relays: HashMap<Arc<str>, (Arc<Backend>, AbortOnDrop)> = HashMap::new();
        loop {
            let backends = self.views.backends();
            relays.retain(|name, (backend, _)| {
                backends.get(name).is_some_and(|current| Arc::ptr_eq(current, backend))
            });
            for (name, backend) in &*backends {
                let is_used = || session.links.has(backend) || !session.subscriptions_at(name).is_empty();
                if relays.contains_key(name) || !is_used() {
                    continue;
                }
                let (front, listener, at) = (self.clone(), listener.clone(), backend.clone());
                let relay = tokio::spawn(async move { front.relay(&listener, &at).await });
                relays.insert(name.clone(), (backend.clone(), AbortOnDrop(relay.abort_handle())));
            }
            tokio::select! {
                Ok(()) = opened.changed() => {}
                Ok(()) = changes.changed() => {}
                else => return,
            }
        }
    }

    /// Relays what a backend sends by itself, for ever. If its stream ends, it is opened again, and so is a session that the
    /// backend has lost, if the client waits for something in it.
    async fn relay(&self, listener: &Listener, backend: &Arc<Backend>) {
        let Listener { session, caller, .. } = listener;
        let is_for_each = self.views.is_for_each(backend);
        let mut opened = session.links.changes();
        let mut pause = limits::LISTEN_PAUSE;
        let mut has_listened = false;
        let mut place = Place::default();
        loop {
            let link = match self.link(session, caller, backend).await {
                Ok(link) => link,
                Err(error) => {
                    debug!(backend = &*backend.name, %error, "failed to open a session to listen in");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(limits::LISTEN_LONGEST_PAUSE);
                    continue;
                }
            };
            let started = Instant::now();
            let mut subscribed = pin!(session.subscribed.notified());
            subscribed.as_mut().enable();
            let interest =
                Interest { lists: is_for_each, resources: session.subscriptions_at(&backend.name) };
            let is_modern = link.revision.era() == Era::Modern;
            let is_awaited = is_for_each || !interest.resources.is_empty();
            let was_resumed = place.id.is_some();
            let relayed = async {
                let listening = backend.listen(&link, caller, &interest, &place).await;
                place = Place::default();
                match listening {
                    Ok(Some(mut events)) => {
                        if has_listened {
                            // What it has announced meanwhile is not known.
                            session.expire_own_lists(&backend.name);
                        }
                        has_listened = true;
                        while let Some(message) = events.next().await {
                            self.pass_on(&message, listener, backend, &link).await;
                        }
                        place = events.place();
                    }
                    // It has no stream, or not this one any more.
                    Ok(None) if was_resumed => {}
                    Ok(None) => std::future::pending().await,
                    Err(BackendError::SessionLost) => {
                        session.links.forget(backend, &link);
                        if !is_awaited {
                            std::future::pending().await
                        }
                    }
                    Err(error) => debug!(backend = &*backend.name, %error, "failed to listen to a backend"),
                }
                if started.elapsed() > limits::LISTEN_LONGEST_PAUSE {
                    pause = limits::LISTEN_PAUSE;
                }
                // A backend that ends its stream to be asked again later says when.
                let own = place.pause.filter(|_| place.id.is_some());
                tokio::time::sleep(own.unwrap_or(pause).max(limits::RESUME_LEAST_PAUSE)).await;
                pause = (pause * 2).min(limits::LISTEN_LONGEST_PAUSE);
            };
            tokio::select! {
                () = relayed => {}
                // Since 2026-07-28, a stream is for what was subscribed to when it was opened.
                () = subscribed, if is_modern => {}
                () = replaced(session, backend, &link, &mut opened) => place = Place::default(),
            }
        }
    }

    /// Passes on a message that belongs to no request.
    async fn pass_on(&self, message: &Bytes, listener: &Listener, backend: &Arc<Backend>, link: &Arc<Link>) {
        let Ok(envelope) = Envelope::parse(message) else { return };
        let session = &listener.session;
        match envelope.message() {
            Message::Notification { .. } if envelope.method() == Some(Method::Cancelled) => {
                withdrawn(&envelope, backend, link).into_iter().for_each(|message| session.send(message));
            }
            Message::Notification { .. } if for_client(&envelope, session, backend, session.level()) => {
                let is_same = link.revision.era() == Era::Legacy;
                let message = if is_same { Some(message.clone()) } else { retagged(&envelope, None) };
                message.into_iter().for_each(|message| session.send(message));
            }
            Message::Request { id, .. }
                if for_session(&envelope, session)
                    && let Some(number) = link.questions.ask(&envelope) =>
            {
                let (caller, id) = (&listener.caller, id.raw().as_str());
                let question = Question { session, backend, link, caller, id, number };
                let id = question.announce(self.kept.as_ref()).await;
                readdressed(&envelope, &id).into_iter().for_each(|message| session.send(message));
            }
            Message::Request { .. } => backend.decline(link, &listener.caller, &envelope).await,
            _ => {}
        }
    }
}

/// Completes when a session at a backend has been replaced by another.
async fn replaced(
    session: &ClientSession,
    backend: &Backend,
    link: &Arc<Link>,
    opened: &mut watch::Receiver<u64>,
) {
    let is_other = |current: Arc<Link>| !Arc::ptr_eq(&current, link);
    while !session.links.opened(&backend.name).is_some_and(is_other) {
        if opened.changed().await.is_err() {
            std::future::pending().await
        }
    }
}
