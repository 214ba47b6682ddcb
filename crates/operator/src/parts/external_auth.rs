//! MCPExternalAuthConfig: how a proxy authenticates to what stands behind it.

use skep_api::{
    auth_server::EmbeddedAuthServer,
    external_auth,
    kinds::{ExternalAuthType, MCPExternalAuthConfigSpec},
    refs::SecretKeyRef,
};
use skep_config::{
    env,
    run_config::{AwsSts, HeaderStrategy, RemoteAuth, RoleMapping, TokenExchange},
};

use super::{auth_server, checks, said, text};
use crate::build::EnvList;

/// How tokens are called in full.
const TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:";

/// What the proxy of an MCPServer or MCPRemoteProxy gets from the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExternalAuth<'a> {
    /// For `token_exchange_config`.
    TokenExchange(TokenExchange),
    /// For `remote_auth_config`.
    RemoteAuth(Box<RemoteAuth>),
    /// For `aws_sts_config`. Only the proxy of a remote server can sign.
    AwsSts(AwsSts),
    /// For [`auth_server`](super::auth_server).
    AuthServer(&'a EmbeddedAuthServer),
    /// The type is for virtual MCP servers alone, or asks for nothing.
    Nothing,
}

/// What is wrong with the object by itself.
pub(crate) fn check(spec: &MCPExternalAuthConfigSpec) -> Result<(), String> {
    check_type(spec)?;
    if spec.type_ == ExternalAuthType::Obo {
        return Err(unsupported());
    }
    if let Some(exchange) = &spec.token_exchange {
        checks::url("tokenExchange.tokenUrl", &exchange.token_url)?;
    }
    if let Some(sts) = &spec.aws_sts {
        check_aws_sts(sts)?;
    }
    for (field, secret) in named_secrets(spec) {
        checks::secret(field, secret)?;
    }
    let server = spec.embedded_auth_server.as_ref();
    server.map_or(Ok(()), auth_server::check).map_err(|error| format!("embeddedAuthServer.{error}"))
}

fn check_type(spec: &MCPExternalAuthConfigSpec) -> Result<(), String> {
    let fields = [
        (ExternalAuthType::TokenExchange, spec.token_exchange.is_some()),
        (ExternalAuthType::HeaderInjection, spec.header_injection.is_some()),
        (ExternalAuthType::BearerToken, spec.bearer_token.is_some()),
        (ExternalAuthType::EmbeddedAuthServer, spec.embedded_auth_server.is_some()),
        (ExternalAuthType::AwsSts, spec.aws_sts.is_some()),
        (ExternalAuthType::UpstreamInject, spec.upstream_inject.is_some()),
        (ExternalAuthType::Obo, spec.obo.is_some()),
        (ExternalAuthType::Xaa, spec.xaa.is_some()),
    ];
    match fields.iter().find(|(type_, set)| *set != (*type_ == spec.type_)) {
        None => Ok(()),
        Some((field, true)) => {
            Err(format!("{}: leave it out, as type is {}", field.as_str(), spec.type_.as_str()))
        }
        Some((field, false)) => Err(format!("{0}: set it, as type is {0}", field.as_str())),
    }
}

fn unsupported() -> String {
    "type: \"obo\" is not supported: choose another one, such as tokenExchange".into()
}

fn check_aws_sts(sts: &external_auth::AwsSts) -> Result<(), String> {
    if sts.role_mappings.is_empty() && said(&sts.fallback_role_arn).is_none() {
        return Err("awsSts: no caller would get a role: set roleMappings, fallbackRoleArn or both".into());
    }
    let either = |mapping: &external_auth::RoleMapping| {
        said(&mapping.claim).is_some() != said(&mapping.matcher).is_some()
    };
    for (index, mapping) in sts.role_mappings.iter().enumerate() {
        let field = format!("awsSts.roleMappings[{index}]");
        if !either(mapping) {
            return Err(format!("{field}: set either claim or matcher"));
        }
        if let Some(matcher) = said(&mapping.matcher) {
            checks::matcher(&format!("{field}.matcher"), matcher)?;
        }
    }
    Ok(())
}

/// What the proxy gets. Secrets are in the environment: see [`add_env`].
pub(crate) fn external_auth(spec: &MCPExternalAuthConfigSpec) -> Result<ExternalAuth<'_>, String> {
    check_type(spec)?;
    if spec.type_ == ExternalAuthType::Obo {
        return Err(unsupported());
    }
    Ok(if let Some(exchange) = &spec.token_exchange {
        ExternalAuth::TokenExchange(token_exchange(exchange))
    } else if let Some(bearer) = &spec.bearer_token {
        ExternalAuth::RemoteAuth(Box::new(RemoteAuth::with_bearer_token(&bearer.token_secret_ref.name)))
    } else if let Some(sts) = &spec.aws_sts {
        ExternalAuth::AwsSts(aws_sts(sts))
    } else if let Some(server) = &spec.embedded_auth_server {
        ExternalAuth::AuthServer(server)
    } else {
        ExternalAuth::Nothing
    })
}

fn token_exchange(exchange: &external_auth::TokenExchange) -> TokenExchange {
    let header = text(&exchange.external_token_header_name);
    let strategy = if header.is_empty() { HeaderStrategy::Replace } else { HeaderStrategy::Custom };
    TokenExchange {
        token_url: exchange.token_url.clone(),
        client_id: text(&exchange.client_id),
        client_secret: String::new(),
        audience: exchange.audience.clone(),
        scopes: exchange.scopes.clone(),
        subject_token_type: said(&exchange.subject_token_type).map(token_type).unwrap_or_default(),
        header_strategy: Some(strategy),
        external_token_header_name: header,
    }
}

/// A type of token, in full.
pub(super) fn token_type(name: &str) -> String {
    format!("{TOKEN_TYPE}{}", name.strip_prefix(TOKEN_TYPE).unwrap_or(name))
}

fn aws_sts(sts: &external_auth::AwsSts) -> AwsSts {
    let mappings = sts.role_mappings.iter().map(|mapping| RoleMapping {
        claim: text(&mapping.claim),
        matcher: text(&mapping.matcher),
        role_arn: mapping.role_arn.clone(),
        priority: mapping.priority,
    });
    AwsSts {
        region: sts.region.clone(),
        service: sts.service().into(),
        fallback_role_arn: text(&sts.fallback_role_arn),
        role_mappings: mappings.collect(),
        role_claim: sts.role_claim().into(),
        session_duration: u32::try_from(sts.session_duration()).unwrap_or_default(),
        session_name_claim: sts.session_name_claim().into(),
        subject_provider_name: String::new(),
    }
}

/// The Secrets that must be there for an MCPServer or MCPRemoteProxy. Those of an authorization server are told by
/// [`auth_server::secrets`].
pub(crate) fn secrets(spec: &MCPExternalAuthConfigSpec) -> Vec<&SecretKeyRef> {
    variables(spec).into_iter().map(|(_, secret)| secret).collect()
}

/// Adds the secrets that the proxy presents.
pub(crate) fn add_env(spec: &MCPExternalAuthConfigSpec, list: &mut EnvList) {
    for (name, secret) in variables(spec) {
        list.set_from_secret(name, secret);
    }
}

fn variables(spec: &MCPExternalAuthConfigSpec) -> Vec<(String, &SecretKeyRef)> {
    let exchange = spec.token_exchange.as_ref().and_then(|exchange| exchange.client_secret_ref.as_ref());
    let exchange = exchange.map(|secret| (env::TOKEN_EXCHANGE_CLIENT_SECRET.to_owned(), secret));
    let bearer = spec.bearer_token.as_ref().map(|bearer| &bearer.token_secret_ref);
    let bearer = bearer.map(|secret| (env::secret(&secret.name), secret));
    exchange.into_iter().chain(bearer).collect()
}

fn named_secrets(spec: &MCPExternalAuthConfigSpec) -> Vec<(&'static str, &SecretKeyRef)> {
    let (exchange, xaa) = (spec.token_exchange.as_ref(), spec.xaa.as_ref());
    let secrets = [
        ("tokenExchange.clientSecretRef", exchange.and_then(|exchange| exchange.client_secret_ref.as_ref())),
        (
            "headerInjection.valueSecretRef",
            spec.header_injection.as_ref().map(|header| &header.value_secret_ref),
        ),
        ("bearerToken.tokenSecretRef", spec.bearer_token.as_ref().map(|bearer| &bearer.token_secret_ref)),
        ("xaa.idpClientSecretRef", xaa.and_then(|xaa| xaa.idp_client_secret_ref.as_ref())),
        ("xaa.targetClientSecretRef", xaa.and_then(|xaa| xaa.target_client_secret_ref.as_ref())),
    ];
    secrets.into_iter().filter_map(|(field, secret)| Some((field, secret?))).collect()
}

#[cfg(test)]
mod tests;
