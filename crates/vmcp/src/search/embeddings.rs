//! Vectors of an embedding service. Those of tools are made in the background, and only of tools that are new or changed.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use sha2::{Digest, Sha256};
use skep_gateway::{identity::Holder, outbound::ServiceError};
use skep_tool_search::ToolVectors;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::{ToolIndex, service::EmbeddingService};
use crate::limits;

/// A text, by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn of(text: String) -> (Self, String) {
        (Self(Sha256::digest(text.as_bytes()).into()), text)
    }
}

/// The vectors that a service has made.
pub(super) struct Embeddings {
    service: EmbeddingService,
    state: Mutex<State>,
    wanted: Notify,
    /// Whether the last request failed: only the first failure in a row is logged.
    is_failing: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The indexes that are in use.
    indexes: Vec<Weak<ToolIndex>>,
    vectors: HashMap<Key, ToolVectors>,
    /// How many numbers a vector has.
    width: usize,
    /// The model that made them, if the service names it.
    model: Option<String>,
    /// When the vector of a query may be made again.
    resume: Option<Instant>,
}

impl Embeddings {
    pub(super) fn new(service: EmbeddingService) -> Self {
        Self { service, state: Mutex::default(), wanted: Notify::new(), is_failing: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the tools of an index embedded.
    pub(super) fn want(&self, index: &Arc<ToolIndex>) {
        let mut state = self.state();
        state.indexes.retain(|known| known.strong_count() > 0);
        if !state.indexes.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(index))) {
            state.indexes.push(Arc::downgrade(index));
            self.wanted.notify_one();
        }
    }

    /// The vector of a query, if the service makes it in time.
    pub(super) async fn query(&self, text: String, holder: Option<Holder>) -> Option<Vec<f32>> {
        // Searches must not wait again and again for a service that fails.
        if self.state().resume.is_some_and(|resume| Instant::now() < resume) {
            return None;
        }
        let time = limits::QUERY_VECTOR_TIME.min(self.service.time());
        // That others have all places is no failure of the service.
        let place = tokio::time::timeout(time, self.service.place(holder)).await.ok()?.ok()?;
        let made = tokio::time::timeout(time, self.service.vectors(place, &[&text])).await;
        let made = self.recorded(made.unwrap_or(Err(ServiceError::Slow)));
        self.state().resume = made.is_none().then(|| Instant::now() + limits::QUERY_VECTOR_PAUSE);
        let vector = made?.pop()?;
        // The service has another model since.
        let is_other = {
            let mut state = self.state();
            let is_other = state.width != 0 && state.width != vector.len();
            if is_other {
                state.vectors.clear();
            }
            is_other
        };
        if is_other {
            self.wanted.notify_one();
        }
        Some(vector)
    }

    /// Embeds what is wanted, for ever. After a failure, it waits.
    pub(super) async fn run(&self) {
        let mut pause = limits::EMBEDDING_PAUSE;
        loop {
            if self.embed_missing().await {
                pause = limits::EMBEDDING_PAUSE;
                self.wanted.notified().await;
            } else {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(limits::EMBEDDING_LONGEST_PAUSE);
            }
        }
    }

    /// Embeds the tools that have no vector, batch by batch. Returns whether all have one.
    async fn embed_missing(&self) -> bool {
        if self.missing().is_empty() {
            self.distribute();
            return true;
        }
        let model = self.service.read_info().await;
        self.use_model(model);
        let missing = self.missing();
        let mut rest = &missing[..];
        let mut size = self.service.batch();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(size.min(rest.len()));
            let texts: Vec<&str> = batch.iter().map(|(_, text)| &**text).collect();
            let Ok(place) = self.service.place(None).await else { return false };
            let made = tokio::time::timeout(self.service.time(), self.service.vectors(place, &texts)).await;
            let made = made.unwrap_or(Err(ServiceError::Slow));
            // Some services have a lower limit.
            if matches!(&made, Err(ServiceError::Status(status)) if status.is_client_error()) && size > 1 {
                size /= 2;
                continue;
            }
            let Some(vectors) = self.recorded(made) else { return false };
            self.keep(batch, vectors);
            rest = later;
        }
        info!(tools = missing.len(), "tools embedded");
        self.distribute();
        true
    }

    /// Forgets the vectors of another model than this. One that is not known may be the same.
    fn use_model(&self, model: Option<String>) {
        let Some(model) = model else { return };
        let mut state = self.state();
        if state.model.as_ref().is_some_and(|known| *known != model) {
            state.vectors.clear();
        }
        state.model = Some(model);
    }

    /// What has no vector, and is forgotten what no index has.
    fn missing(&self) -> Vec<(Key, String)> {
        let mut state = self.state();
        let indexes: Vec<Arc<ToolIndex>> = state.indexes.iter().filter_map(Weak::upgrade).collect();
        let texts: HashMap<Key, &String> =
            indexes.iter().flat_map(|index| &index.texts).map(|(key, text)| (*key, text)).collect();
        let used: HashSet<Key> = texts.keys().copied().collect();
        state.vectors.retain(|key, _| used.contains(key));
        let missing = texts.into_iter().filter(|(key, _)| !state.vectors.contains_key(key));
        missing.map(|(key, text)| (key, text.clone())).collect()
    }

    fn keep(&self, batch: &[(Key, String)], vectors: Vec<Vec<f32>>) {
        let mut state = self.state();
        for ((key, _), vector) in batch.iter().zip(vectors) {
            state.width = vector.len();
            state.vectors.insert(*key, ToolVectors::new(vector));
        }
    }

    /// Gives each index the vectors of its tools.
    fn distribute(&self) {
        let state = self.state();
        for index in state.indexes.iter().filter_map(Weak::upgrade) {
            let vectors = index.texts.iter().map(|(key, _)| state.vectors.get(key).cloned());
            index.set_vectors(vectors.collect());
        }
    }

    /// Logs when the service starts and stops to fail.
    fn recorded(&self, made: Result<Vec<Vec<f32>>, ServiceError>) -> Option<Vec<Vec<f32>>> {
        let had_failed = self.is_failing.swap(made.is_err(), Ordering::Relaxed);
        match made {
            Ok(vectors) => {
                if had_failed {
                    info!("the embedding service responds again");
                }
                Some(vectors)
            }
            Err(error) => {
                if !had_failed {
                    warn!(%error, "embedding service unavailable; tools are searched for by words only");
                }
                None
            }
        }
    }
}
