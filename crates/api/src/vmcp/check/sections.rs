//! The other sections.

use skep_config::FieldError;

use super::missing;
use crate::{
    vmcp::{Config, EmbeddingProvider, Optimizer},
    workload::SessionProvider,
};

pub(super) fn errors(config: &Config) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let storage = config.session_storage.as_ref();
    let redis = storage.filter(|storage| storage.provider == SessionProvider::Redis);
    if redis.is_some_and(|storage| storage.address.as_deref().unwrap_or_default().is_empty()) {
        errors.push(missing("sessionStorage.address"));
    }
    if config.rate_limiting.is_some() && redis.is_none() {
        errors.push(FieldError::new("rateLimiting", "needs sessionStorage.provider redis"));
    }
    let limits = config.rate_limiting.iter().flat_map(|limits| limits.errors());
    errors.extend(limits.map(|error| error.within("rateLimiting")));
    if config.audit.as_ref().and_then(|audit| audit.max_data_size).is_some_and(|size| size < 0) {
        errors.push(FieldError::new("audit.maxDataSize", "must not be negative"));
    }
    if let Some(mode) = &config.code_mode {
        for (field, number) in
            [("stepLimit", mode.step_limit), ("parallelMaxConcurrency", mode.parallel_max_concurrency)]
        {
            if number.is_some_and(|number| number < 1) {
                errors.push(FieldError::new(field, "must be 1 or more").within("codeMode"));
            }
        }
        let time = mode.tool_call_timeout.as_ref().and_then(|time| time.to_std().err());
        errors.extend(time.map(|error| FieldError::new("codeMode.toolCallTimeout", error.to_string())));
    }
    errors.extend(config.optimizer.iter().flat_map(search).map(|error| error.within("optimizer")));
    errors
}

/// The tool search.
fn search(optimizer: &Optimizer) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let uses_openai = optimizer.embedding_provider == Some(EmbeddingProvider::OpenAi);
    if uses_openai && optimizer.embedding_model.as_deref().unwrap_or_default().is_empty() {
        errors.push(FieldError::new("embeddingModel", "must be set, because embeddingProvider is openai"));
    }
    if optimizer.embedding_model_path.as_deref().is_some_and(|path| !path.starts_with('/')) {
        errors.push(FieldError::new("embeddingModelPath", "must be an absolute path"));
    }
    if optimizer.max_tools_to_return.is_some_and(|count| !(1..=50).contains(&count)) {
        errors.push(FieldError::new("maxToolsToReturn", "must be from 1 to 50"));
    }
    for (field, value, max) in [
        ("hybridSearchSemanticRatio", &optimizer.hybrid_search_semantic_ratio, 1.0),
        ("semanticDistanceThreshold", &optimizer.semantic_distance_threshold, 2.0),
    ] {
        let Some(text) = value.as_deref().filter(|text| !text.is_empty()) else { continue };
        if !text.parse::<f64>().is_ok_and(|number| (0.0..=max).contains(&number)) {
            errors.push(FieldError::new(field, format!("{text:?} must be a number from 0 to {max}")));
        }
    }
    let time = optimizer.embedding_service_timeout.as_ref().and_then(|time| time.to_std().err());
    errors.extend(time.map(|error| FieldError::new("embeddingServiceTimeout", error.to_string())));
    errors
}
