//! Requests to an embedding service: Hugging Face's Text Embeddings Inference, or one with the API of OpenAI.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, uri::PathAndQuery};
use serde::Deserialize;
use serde_json::json;
use skep_api::vmcp::{EmbeddingProvider, Optimizer};
use skep_gateway::{
    identity::Holder,
    outbound::{Busy, Service, ServiceError, ServicePlace, Trust, address},
};
use skep_tool_search::normalized;

use crate::limits;

/// The variable that has the key of a service with the API of OpenAI.
const KEY: &str = "OPENAI_API_KEY";
/// How many texts a request has. This is the default limit of Text Embeddings Inference.
const BATCH: usize = 32;
/// How many it has at most, whatever the service allows: a response is limited, too.
const LARGEST_BATCH: usize = 256;

/// An embedding service.
pub(super) struct EmbeddingService {
    service: Service,
    provider: EmbeddingProvider,
    model: String,
    headers: HeaderMap,
    time: Duration,
    /// Where a service of Text Embeddings Inference describes itself.
    info: Option<PathAndQuery>,
    /// How many texts a request may have.
    batch: AtomicUsize,
}

/// What a service of Text Embeddings Inference has in its description.
#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    model_id: String,
    #[serde(default)]
    max_client_batch_size: Option<usize>,
}

impl EmbeddingService {
    pub(super) fn new(url: &str, config: &Optimizer) -> Result<Self, String> {
        let provider = config.embedding_provider.unwrap_or_default();
        let path = match provider {
            EmbeddingProvider::Tei => "embed",
            EmbeddingProvider::OpenAi => "embeddings",
        };
        let uri = address(&format!("{}/{path}", url.trim_end_matches('/')))?;
        let time = config.embedding_service_timeout.as_ref().and_then(|time| time.to_std().ok());
        let time = time.filter(|time| !time.is_zero()).unwrap_or(limits::EMBEDDING_TIME);
        let info = (provider == EmbeddingProvider::Tei).then(|| info_path(&uri)).flatten();
        let service =
            Service::new(uri, time, &Trust::default())?.with_response_limit(limits::EMBEDDING_RESPONSE);
        Ok(Self {
            service,
            provider,
            model: config.embedding_model.clone().unwrap_or_default(),
            headers: headers(config, provider)?,
            time,
            info,
            batch: AtomicUsize::new(BATCH),
        })
    }

    /// How long a request may take.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// How many texts a request may have.
    pub(super) fn batch(&self) -> usize {
        self.batch.load(Ordering::Relaxed)
    }

    /// Reads how many texts a request may have, and returns the model of the service, if it describes itself.
    pub(super) async fn read_info(&self) -> Option<String> {
        let path = self.info.clone()?;
        let place = self.place(None).await.ok()?;
        let (status, answer) = place.get(path, self.headers.clone()).await.ok()?;
        let info: Info = serde_json::from_slice(&answer).ok().filter(|_| status == StatusCode::OK)?;
        let batch = info.max_client_batch_size.filter(|batch| *batch > 0).unwrap_or(BATCH);
        self.batch.store(batch.min(LARGEST_BATCH), Ordering::Relaxed);
        Some(info.model_id)
    }

    /// A place for a request for this caller, or for none.
    pub(super) async fn place(&self, holder: Option<Holder>) -> Result<ServicePlace<'_>, Busy> {
        self.service.place(holder).await
    }

    /// The vector of each text, of length 1.
    pub(super) async fn vectors(
        &self,
        place: ServicePlace<'_>,
        texts: &[&str],
    ) -> Result<Vec<Vec<f32>>, ServiceError> {
        let body = match self.provider {
            EmbeddingProvider::Tei => json!({"inputs": texts, "truncate": true}),
            EmbeddingProvider::OpenAi => {
                json!({"model": self.model, "input": texts, "encoding_format": "float"})
            }
        };
        let (status, answer) = place.post(self.headers.clone(), Bytes::from(body.to_string())).await?;
        if status != StatusCode::OK {
            return Err(ServiceError::Status(status));
        }
        let vectors = parsed(self.provider, &answer).ok_or(ServiceError::Answer("it has no vectors"))?;
        if vectors.len() != texts.len() {
            return Err(ServiceError::Answer("it has not as many vectors as there are texts"));
        }
        let vectors: Option<Vec<_>> = vectors.into_iter().map(normalized).collect();
        vectors.ok_or(ServiceError::Answer("a vector has no length"))
    }
}

/// The path of the description, beside that of the vectors.
fn info_path(vectors: &Uri) -> Option<PathAndQuery> {
    format!("{}info", vectors.path().strip_suffix("embed")?).parse().ok()
}

fn headers(config: &Optimizer, provider: EmbeddingProvider) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if provider != EmbeddingProvider::OpenAi {
        return Ok(headers);
    }
    for (name, value) in &config.embedding_headers {
        let wrong = |_| format!("embeddingHeaders: {name:?} cannot be sent");
        let header: HeaderName = name.parse().map_err(|_| wrong(()))?;
        headers.insert(header, HeaderValue::from_str(value).map_err(|_| wrong(()))?);
    }
    if let Some(key) = std::env::var(KEY).ok().filter(|key| !key.is_empty()) {
        let key = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
        let mut key = key.map_err(|_| format!("{KEY} cannot be sent"))?;
        key.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, key);
    }
    Ok(headers)
}

fn parsed(provider: EmbeddingProvider, answer: &[u8]) -> Option<Vec<Vec<f32>>> {
    #[derive(Deserialize)]
    struct Embedding {
        #[serde(default)]
        index: usize,
        embedding: Vec<f32>,
    }
    #[derive(Deserialize)]
    struct Answer {
        data: Vec<Embedding>,
    }
    match provider {
        EmbeddingProvider::Tei => serde_json::from_slice(answer).ok(),
        EmbeddingProvider::OpenAi => {
            let Answer { data: mut all } = serde_json::from_slice(answer).ok()?;
            all.sort_by_key(|embedding| embedding.index);
            Some(all.into_iter().map(|embedding| embedding.embedding).collect())
        }
    }
}
