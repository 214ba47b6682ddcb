//! What the process refuses when it starts. It is said before: pods that run go on running, and none crashes.

use std::time::Duration;

use skep_api::{
    kinds::VirtualMCPServerSpec,
    vmcp::{Aggregation, Config, ConflictResolution, EmbeddingProvider, Optimizer, ToolVisibility},
};

use super::config::HALF_A_MINUTE;

/// How long a health check may take, unless something else is said.
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The first thing that would be refused. Each message begins with the field.
pub(super) fn check(spec: &VirtualMCPServerSpec, config: &Config) -> Result<(), String> {
    check_health_checks(config)?;
    if let Some(aggregation) = &config.aggregation {
        check_order(aggregation).map_err(|error| format!("config.aggregation.{error}"))?;
    }
    if let Some(optimizer) = &config.optimizer {
        check_search(optimizer).map_err(|error| format!("config.optimizer.{error}"))?;
    }
    check_search_with_policies(spec, config)
}

fn check_health_checks(config: &Config) -> Result<(), String> {
    let handling = config.operational.as_ref().and_then(|operational| operational.failure_handling.as_ref());
    let Some(handling) = handling else { return Ok(()) };
    // One that is no duration is told of by who passes it on.
    let time = |said: &Option<skep_api::Duration>, default| {
        let said = said.as_ref().and_then(|said| said.to_std().ok());
        said.filter(|time| !time.is_zero()).unwrap_or(default)
    };
    let timeout = time(&handling.health_check_timeout, HEALTH_CHECK_TIMEOUT);
    let interval = time(&handling.health_check_interval, HALF_A_MINUTE);
    if timeout < interval {
        return Ok(());
    }
    Err(format!(
        "config.operational.failureHandling.healthCheckTimeout: {timeout:?} is not shorter than healthCheckInterval, \
         which is {interval:?}: shorten it, or check less often"
    ))
}

fn check_order(aggregation: &Aggregation) -> Result<(), String> {
    // Where nothing is shown unless it is named, a backend of which nothing is said has no say in a conflict.
    let hidden = aggregation.default_tool_visibility == Some(ToolVisibility::Deny)
        && aggregation.conflict_resolution == Some(ConflictResolution::Priority);
    let named = |backend: &&String| aggregation.tools.iter().any(|tools| tools.workload == **backend);
    let order = aggregation.conflict_resolution_config.iter().flat_map(|config| &config.priority_order);
    match order.into_iter().find(|backend| hidden && !named(backend)) {
        Some(backend) => Err(format!(
            "conflictResolutionConfig.priorityOrder: {backend:?} is not among tools, and none of its tools is shown, as \
             defaultToolVisibility is deny: add it there, or leave it out here"
        )),
        None => Ok(()),
    }
}

fn check_search(optimizer: &Optimizer) -> Result<(), String> {
    let asks_openai = optimizer.embedding_provider == Some(EmbeddingProvider::OpenAi);
    if asks_openai && optimizer.embedding_model.as_deref().unwrap_or_default().is_empty() {
        return Err("embeddingModel: name a model, as embeddingProvider is openai".into());
    }
    for (field, said, most) in [
        ("hybridSearchSemanticRatio", &optimizer.hybrid_search_semantic_ratio, 1.0),
        ("semanticDistanceThreshold", &optimizer.semantic_distance_threshold, 2.0),
    ] {
        let Some(text) = said.as_deref().filter(|text| !text.is_empty()) else { continue };
        if !text.parse::<f64>().is_ok_and(|number| (0.0..=most).contains(&number)) {
            return Err(format!("{field}: {text:?} is not a number from 0 to {most}"));
        }
    }
    Ok(())
}

/// A search hides which tool is called from whoever decides about calls.
fn check_search_with_policies(spec: &VirtualMCPServerSpec, config: &Config) -> Result<(), String> {
    let auth = &spec.incoming_auth;
    let policies = match (&auth.authz_config, &auth.authz_config_ref) {
        (Some(_), _) => "incomingAuth.authzConfig",
        (None, Some(_)) => "incomingAuth.authzConfigRef",
        (None, None) => return Ok(()),
    };
    let search = match (&config.optimizer, &spec.embedding_server_ref) {
        (Some(_), _) => "config.optimizer",
        (None, Some(_)) => "embeddingServerRef",
        (None, None) => return Ok(()),
    };
    Err(format!("{search}: a search for tools cannot be held to policies: leave out this, or {policies}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(config: Value, more: Value) -> Option<String> {
        let mut spec = json!({"groupRef": {"name": "g"}, "incomingAuth": {"type": "anonymous"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let spec: VirtualMCPServerSpec = serde_json::from_value(spec).unwrap();
        let message = check(&spec, &serde_json::from_value(config).unwrap()).err()?;
        Some(message.split_once(": ").unwrap().0.to_owned())
    }

    #[test]
    fn what_would_be_refused_is_told_by_its_field() {
        let policies = json!({"incomingAuth": {"type": "anonymous", "authzConfigRef": {"name": "a"}}});
        let embeddings = json!({
            "incomingAuth": policies["incomingAuth"], "embeddingServerRef": {"name": "e"},
        });
        let handling = |handling: Value| json!({"operational": {"failureHandling": handling}});
        let timeout = "config.operational.failureHandling.healthCheckTimeout";
        for (config, more, field) in [
            (handling(json!({"healthCheckInterval": "10s"})), json!({}), timeout),
            (handling(json!({"healthCheckTimeout": "30s", "healthCheckInterval": "0s"})), json!({}), timeout),
            (json!({"optimizer": {}}), policies.clone(), "config.optimizer"),
            (json!({}), embeddings, "embeddingServerRef"),
            (
                json!({"optimizer": {"hybridSearchSemanticRatio": "1.1"}}),
                json!({}),
                "config.optimizer.hybridSearchSemanticRatio",
            ),
            (
                json!({"optimizer": {"embeddingProvider": "openai"}}),
                json!({}),
                "config.optimizer.embeddingModel",
            ),
        ] {
            assert_eq!(refused(config, more), Some(field.to_owned()));
        }
        for config in [
            json!({}),
            handling(json!({})),
            handling(json!({"healthCheckInterval": "5s", "healthCheckTimeout": "4999ms"})),
            json!({"optimizer": {"hybridSearchSemanticRatio": "1", "semanticDistanceThreshold": ".5"}}),
        ] {
            assert_eq!(refused(config, json!({})), None);
        }
        assert_eq!(refused(json!({}), policies), None);
    }
}
