//! The middlewares of a virtual server, which are those of the proxy.

use serde::{Serialize, de::DeserializeOwned};
use skep_api::vmcp::{Authz, Config, IncomingAuth, Oidc};
use skep_config::{
    FieldError, Json, env,
    run_config::{
        self, Audit, AuditParameters, Auth, Authorization, AuthzDocument, Cedar, Middleware, RateLimit,
        TelemetryParameters, Transport,
    },
};
use skep_gateway::{
    endpoint::Extras,
    identity::Identity,
    middleware::{Chain, ChainContext},
};

use super::{Listen, Variables};
use crate::ConfigError;

/// The component in audit events, unless it is configured.
const COMPONENT: &str = "vmcp-server";
/// The namespace in the keys of rate limits, outside of a cluster.
const NO_NAMESPACE: &str = "local";

/// The middlewares of a configuration, outermost first.
pub(super) fn middlewares(
    config: &Config,
    listen: &Listen,
    variables: &Variables,
) -> Result<Vec<Middleware>, ConfigError> {
    let incoming = config.incoming_auth.as_ref();
    let oidc = incoming
        .filter(|incoming| incoming.type_ == IncomingAuth::OIDC)
        .and_then(|incoming| incoming.oidc.as_ref());
    let authz =
        incoming.and_then(|incoming| incoming.authz.as_ref()).filter(|authz| authz.type_ == Authz::CEDAR);
    let mut middlewares = Vec::new();
    middlewares.extend(audit(config, listen)?.map(Middleware::Audit));
    middlewares.push(Middleware::Auth(Auth { oidc_config: oidc.map(|oidc| tokens(oidc, variables)) }));
    middlewares.extend(telemetry(config)?.map(Middleware::Telemetry));
    middlewares.extend(authz.map(policies).transpose()?.map(Middleware::Authorization));
    // Calls that are denied must not use up what all callers share.
    middlewares.extend(rate_limit(config)?.map(Middleware::RateLimit));
    Ok(middlewares)
}

pub(super) fn chain(
    config: &Config,
    middlewares: &[Middleware],
    listen: &Listen,
    extras: Extras,
) -> Result<Chain, ConfigError> {
    Chain::new(middlewares, &context(config, listen, extras))
}

/// The facts about a virtual server that middlewares need.
pub(super) fn context<'a>(config: &'a Config, listen: &'a Listen, extras: Extras) -> ChainContext<'a> {
    let type_ = config.incoming_auth.as_ref().map(|incoming| &*incoming.type_).unwrap_or_default();
    ChainContext {
        server: config.name.as_deref().unwrap_or_default(),
        host: &listen.host,
        remote_url: "",
        transport: Transport::StreamableHttp,
        trusts_proxy_headers: false,
        is_virtual: true,
        own_tools: super::own_tools(config),
        unauthenticated: match type_ {
            IncomingAuth::LOCAL => Identity::local_user(&user()),
            _ => Identity::anonymous(),
        },
        extras,
        sessions: None,
    }
}

/// The user that runs the process.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "local".into())
}

fn tokens(oidc: &Oidc, variables: &Variables) -> run_config::Oidc {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let secret = oidc.client_secret_env.as_ref().and_then(|variable| variables.secret(variable));
    run_config::Oidc {
        issuer: oidc.issuer.clone(),
        audience: oidc.audience.clone(),
        jwks_url: text(&oidc.jwks_url),
        client_id: oidc.client_id.clone(),
        client_secret: secret.unwrap_or_default(),
        ca_cert_path: text(&oidc.ca_bundle_path),
        auth_token_file: String::new(),
        allow_private_ip: oidc.jwks_allow_private_ip == Some(true)
            || oidc.protected_resource_allow_private_ip == Some(true),
        insecure_allow_http: oidc.insecure_allow_http == Some(true),
        introspection_url: text(&oidc.introspection_url),
        resource_url: text(&oidc.resource),
        scopes: oidc.scopes.clone(),
    }
}

fn policies(authz: &Authz) -> Result<Authorization, ConfigError> {
    let document = AuthzDocument::with_cedar(cedar(authz));
    let document = Json::new(&document).map_err(|error| ConfigError::new(error.to_string()))?;
    Ok(Authorization { config_path: String::new(), config_data: Some(document) })
}

/// Every mistake in the policies, by the fields of the file.
pub(super) fn policy_errors(config: &Config) -> Vec<FieldError> {
    let authz = config.incoming_auth.as_ref().and_then(|incoming| incoming.authz.as_ref());
    let Some(authz) = authz.filter(|authz| authz.type_ == Authz::CEDAR) else { return Vec::new() };
    let error = |mistake: &skep_authz::Error| {
        let names = [("entities_json", "entitiesJson"), ("group_entity_type", "groupEntityType")];
        let path = names.iter().fold(mistake.path().to_owned(), |path, (name, own)| path.replace(name, own));
        FieldError::new(path, mistake.message()).within("incomingAuth.authz")
    };
    skep_authz::mistakes(&cedar(authz)).iter().map(error).collect()
}

fn cedar(authz: &Authz) -> Cedar {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Cedar {
        policies: authz.policies.clone(),
        entities_json: authz.entities_json.clone().unwrap_or_else(|| "[]".into()),
        primary_upstream_provider: text(&authz.primary_upstream_provider),
        group_claim_name: text(&authz.group_claim_name),
        role_claim_name: text(&authz.role_claim_name),
        group_entity_type: text(&authz.group_entity_type),
        multi_valued_claims: Vec::new(),
    }
}

/// A section of the configuration decides that requests are audited, and how.
fn audit(config: &Config, listen: &Listen) -> Result<Option<AuditParameters>, ConfigError> {
    let audit: Audit = match &config.audit {
        Some(audit) => same("audit", audit)?,
        None if listen.audits => Audit::standard(),
        None => return Ok(None),
    };
    let component = if audit.component.is_empty() { COMPONENT.into() } else { audit.component.clone() };
    Ok(Some(AuditParameters {
        config_path: String::new(),
        config_data: Some(Audit { component: component.clone(), enabled: true, ..audit }),
        component,
        transport_type: Some(Transport::StreamableHttp),
    }))
}

fn telemetry(config: &Config) -> Result<Option<TelemetryParameters>, ConfigError> {
    let Some(telemetry) = &config.telemetry else { return Ok(None) };
    let same: run_config::Telemetry = same("telemetry", telemetry)?;
    Ok(Some(TelemetryParameters {
        config: run_config::Telemetry {
            use_legacy_attributes: telemetry.use_legacy_attributes.unwrap_or(true),
            ..same
        },
        server_name: config.name.clone().unwrap_or_default(),
        transport: Transport::StreamableHttp,
    }))
}

fn rate_limit(config: &Config) -> Result<Option<RateLimit>, ConfigError> {
    let Some(limits) = &config.rate_limiting else { return Ok(None) };
    let storage = config.session_storage.as_ref();
    Ok(Some(RateLimit {
        namespace: std::env::var(env::VMCP_NAMESPACE).unwrap_or_else(|_| NO_NAMESPACE.into()),
        server_name: config.name.clone().unwrap_or_default(),
        config: same("rateLimiting", limits)?,
        redis_addr: storage.and_then(|storage| storage.address.clone()).unwrap_or_default(),
        redis_db: storage.and_then(|storage| storage.db).unwrap_or_default(),
    }))
}

/// A section that both configurations write alike.
fn same<T: DeserializeOwned>(section: &str, value: &impl Serialize) -> Result<T, ConfigError> {
    let value = serde_json::to_value(value);
    value.and_then(serde_json::from_value).map_err(|error| ConfigError::new(format!("{section}: {error}")))
}
