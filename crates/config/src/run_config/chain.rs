//! The middleware chain that follows from the other fields of a RunConfig.

use serde_json::Value;

use super::{
    AuditParameters, Auth, Authorization, AuthzDocument, AwsStsParameters, BodyLimit,
    HeaderForwardParameters, Middleware, RateLimit, RateLimits, RunConfig, TelemetryParameters,
    TokenExchangeParameters, ToolFilter, UpstreamSwapParameters, Webhook, Webhooks,
};
use crate::{AuthServer, Json};

/// Why a RunConfig has no valid middleware chain.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// A middleware needs a token that is stripped before.
    #[error("embedded_auth_server_config.disable_upstream_token_injection: {0} needs a token")]
    NoToken(&'static str),
    /// Only requests to a remote server are signed.
    #[error("aws_sts_config: it signs requests to a remote server, and remote_url is empty")]
    NotRemote,
    /// Rate limits need Redis.
    #[error("rate_limit_config: calls are counted in Redis, and scaling_config.session_redis is missing")]
    NoRedis,
    /// The authorization document is malformed.
    #[error("authz_config: {0}")]
    Document(serde_json::Error),
}

/// The default name of an upstream provider.
const UNNAMED: &str = "default";

/// The middleware chain, outermost first.
///
/// The order matters for security: the caller is authenticated before any decision, and authorization comes after all
/// that changes the request. Rate limits count only calls that are permitted: others would use up what all callers share.
pub(super) fn middleware(config: &RunConfig) -> Result<Vec<Middleware>, ChainError> {
    let mut chain = vec![Middleware::BodyLimit(BodyLimit::default())];
    chain.extend(config.audit_config.clone().map(|audit| {
        Middleware::Audit(AuditParameters {
            config_data: Some(audit),
            transport_type: Some(config.transport),
            ..AuditParameters::default()
        })
    }));
    chain.push(Middleware::Auth(Auth { oidc_config: config.oidc_config.clone() }));
    chain.extend(config.embedded_auth_server_config.as_ref().map(|server| upstream_token(config, server)));
    if let Some(exchange) = &config.token_exchange_config {
        needs_token(config, "a token exchange")?;
        let token_exchange_config = exchange.clone();
        chain.push(Middleware::TokenExchange(TokenExchangeParameters { token_exchange_config }));
    }
    chain.extend(tools(config));
    chain.push(Middleware::McpParser);
    chain.extend(config.telemetry_config.clone().map(|telemetry| {
        Middleware::Telemetry(TelemetryParameters {
            config: telemetry,
            server_name: config.name.clone(),
            transport: config.transport,
        })
    }));
    chain.extend(webhooks(config, &config.mutating_webhooks).map(Middleware::MutatingWebhook));
    chain.extend(webhooks(config, &config.validating_webhooks).map(Middleware::ValidatingWebhook));
    if let Some(document) = &config.authz_config {
        chain.push(Middleware::Authorization(authorization(config, document)?));
    }
    if let Some(limits) = &config.rate_limit_config {
        chain.push(Middleware::RateLimit(rate_limit(config, limits)?));
    }
    if let Some(sts) = &config.aws_sts_config {
        needs_token(config, "AWS STS")?;
        if config.remote_url.is_empty() {
            return Err(ChainError::NotRemote);
        }
        let (aws_sts_config, target_url) = (sts.clone(), config.remote_url.clone());
        chain.push(Middleware::AwsSts(AwsStsParameters { aws_sts_config, target_url }));
    }
    let remote = !config.remote_url.is_empty();
    chain.extend(config.header_forward.as_ref().filter(|_| remote).map(|headers| {
        // The proxy adds headers from Secrets, because it can read their values.
        let add_headers = headers.add_plaintext_headers.clone();
        Middleware::HeaderForward(HeaderForwardParameters { add_headers })
    }));
    chain.extend(config.additional_middleware_configs.iter().cloned());
    chain.push(Middleware::Recovery);
    Ok(chain)
}

/// Replaces or strips the token of our own authorization server: no server behind the proxy would accept it.
fn upstream_token(config: &RunConfig, server: &AuthServer) -> Middleware {
    if server.disable_upstream_token_injection {
        return Middleware::StripAuth;
    }
    let mut config = config.upstream_swap_config.clone().unwrap_or_default();
    if config.provider_name.is_empty() {
        config.provider_name = first_upstream(server).into();
    }
    Middleware::UpstreamSwap(UpstreamSwapParameters { config })
}

fn first_upstream(server: &AuthServer) -> &str {
    server
        .upstreams
        .first()
        .map(|upstream| upstream.name.as_str())
        .filter(|name| !name.is_empty())
        .unwrap_or(UNNAMED)
}

fn needs_token(config: &RunConfig, what: &'static str) -> Result<(), ChainError> {
    match &config.embedded_auth_server_config {
        Some(server) if server.disable_upstream_token_injection => Err(ChainError::NoToken(what)),
        _ => Ok(()),
    }
}

fn tools(config: &RunConfig) -> impl Iterator<Item = Middleware> {
    let all = config.tools_filter.is_empty() && config.tools_override.is_empty();
    let filter = (!all).then(|| ToolFilter {
        filter_tools: config.tools_filter.clone(),
        tools_override: config.tools_override.clone(),
    });
    filter
        .into_iter()
        .flat_map(|filter| [Middleware::ToolFilter(filter.clone()), Middleware::ToolCallFilter(filter)])
}

fn rate_limit(config: &RunConfig, limits: &RateLimits) -> Result<RateLimit, ChainError> {
    let redis = config.scaling_config.as_ref().and_then(|scaling| scaling.session_redis.as_ref());
    let redis = redis.ok_or(ChainError::NoRedis)?;
    Ok(RateLimit {
        namespace: config.rate_limit_namespace.clone(),
        server_name: config.name.clone(),
        config: limits.clone(),
        redis_addr: redis.address.clone(),
        redis_db: redis.db,
    })
}

fn webhooks(config: &RunConfig, webhooks: &[Webhook]) -> Option<Webhooks> {
    (!webhooks.is_empty()).then(|| Webhooks {
        webhooks: webhooks.to_vec(),
        server_name: config.name.clone(),
        transport: config.transport,
    })
}

/// Authorization. Behind our own authorization server, policies use the token of the upstream provider: ours has no
/// groups.
fn authorization(config: &RunConfig, document: &Json) -> Result<Authorization, ChainError> {
    let mut config_data = document.clone();
    if let Some(server) = &config.embedded_auth_server_config {
        let mut value: Value = document.read().map_err(ChainError::Document)?;
        if value["type"] == AuthzDocument::CEDAR && value["cedar"].is_object() {
            value["cedar"]["primary_upstream_provider"] = first_upstream(server).into();
            value.sort_all_objects();
            config_data = Json::new(&value).map_err(ChainError::Document)?;
        }
    }
    Ok(Authorization { config_data: Some(config_data), ..Authorization::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(fields: Value) -> RunConfig {
        let mut written = json!({"name": "files", "transport": "stdio"});
        written.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        RunConfig::parse(&written.to_string()).unwrap()
    }

    fn types(fields: Value) -> Vec<String> {
        middleware(&config(fields)).unwrap().iter().map(|one| one.type_().to_owned()).collect()
    }

    fn auth_server(fields: Value) -> Value {
        let mut written =
            json!({"issuer": "https://as.example", "upstreams": [{"name": "corp", "type": "oidc"}]});
        written.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"embedded_auth_server_config": written})
    }

    fn joined(a: Value, b: Value) -> Value {
        let mut a = a;
        a.as_object_mut().unwrap().extend(b.as_object().unwrap().clone());
        a
    }

    #[test]
    fn the_shortest_chain_authenticates_and_parses() {
        assert_eq!(types(json!({})), ["bodylimit", "auth", "mcp-parser", "recovery"]);
    }

    #[test]
    fn every_middleware_has_its_position() {
        let webhook = json!([{"name": "a", "url": "https://a.example"}]);
        let everything = json!({
            "remote_url": "https://r.example", "audit_config": {},
            "token_exchange_config": {"token_url": "https://t.example"}, "tools_filter": ["a"],
            "telemetry_config": {}, "rate_limit_config": {}, "mutating_webhooks": webhook,
            "validating_webhooks": webhook, "authz_config": {"type": "cedarv1", "cedar": {}},
            "aws_sts_config": {"region": "eu-west-1"}, "header_forward": {},
            "scaling_config": {"session_redis": {"address": "redis:6379"}},
        });
        let expected = [
            "bodylimit",
            "audit",
            "auth",
            "upstreamswap",
            "tokenexchange",
            "tool-filter",
            "tool-call-filter",
            "mcp-parser",
            "telemetry",
            "mutating-webhook",
            "validating-webhook",
            "authorization",
            "ratelimit",
            "awssts",
            "header-forward",
            "recovery",
        ];
        assert_eq!(types(joined(everything, auth_server(json!({})))), expected);
    }

    #[test]
    fn the_token_of_our_own_server_is_never_forwarded() {
        let second = |fields| middleware(&config(auth_server(fields))).unwrap().swap_remove(2);
        let swap = |name: &str| {
            let written = json!({"type": "upstreamswap", "parameters": {"config": {"provider_name": name}}});
            serde_json::from_value::<Middleware>(written).unwrap()
        };
        assert_eq!(second(json!({})), swap("corp"));
        assert_eq!(second(json!({"upstreams": [{"type": "oidc"}]})), swap("default"));
        assert_eq!(second(json!({"disable_upstream_token_injection": true})), Middleware::StripAuth);
    }

    #[test]
    fn what_needs_a_token_cannot_be_combined_with_none() {
        for fields in [
            json!({"token_exchange_config": {"token_url": "https://t.example"}}),
            json!({"aws_sts_config": {"region": "eu-west-1"}, "remote_url": "https://r.example"}),
        ] {
            let none = auth_server(json!({"disable_upstream_token_injection": true}));
            let error = middleware(&config(joined(fields, none))).unwrap_err();
            assert!(matches!(error, ChainError::NoToken(_)), "{error}");
        }
    }

    #[test]
    fn limits_need_redis_and_signatures_a_remote_server() {
        let error = |fields| middleware(&config(fields)).unwrap_err();
        assert!(matches!(error(json!({"rate_limit_config": {}})), ChainError::NoRedis));
        let signed = error(json!({"aws_sts_config": {"region": "eu-west-1"}}));
        assert!(matches!(signed, ChainError::NotRemote), "{signed}");
    }

    #[test]
    fn headers_are_added_for_a_remote_server_only() {
        let headers = json!({"header_forward": {"add_plaintext_headers": {"X-Key": "k"}}});
        assert!(!types(headers.clone()).contains(&"header-forward".to_owned()));
        let remote = types(joined(headers, json!({"remote_url": "https://r.example"})));
        assert!(remote.contains(&"header-forward".to_owned()));
    }

    #[test]
    fn additional_middlewares_come_last() {
        let added = json!({"additional_middleware_configs": [{"type": "teleport", "parameters": {}}]});
        assert_eq!(types(added), ["bodylimit", "auth", "mcp-parser", "teleport", "recovery"]);
    }

    #[test]
    fn policies_evaluate_the_token_of_the_upstream_provider() {
        let cedar = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["p"], "new": 1}});
        let fields = joined(json!({"authz_config": cedar}), auth_server(json!({})));
        let chain = middleware(&config(fields)).unwrap();
        let Some(Middleware::Authorization(authorization)) =
            chain.iter().find(|one| one.type_() == "authorization")
        else {
            panic!("{chain:?}")
        };
        let expected = json!({
            "version": "1.0", "type": "cedarv1",
            "cedar": {"policies": ["p"], "new": 1, "primary_upstream_provider": "corp"},
        });
        assert_eq!(authorization.config_data.as_ref().unwrap().read::<Value>().unwrap(), expected);
    }
}
