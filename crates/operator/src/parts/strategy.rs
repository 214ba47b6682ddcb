//! MCPExternalAuthConfig, as a virtual MCP server carries it out: how it authenticates to one of its backends.

use skep_api::{
    auth_server::EmbeddedAuthServer,
    external_auth,
    kinds::{ExternalAuthType, MCPExternalAuthConfigSpec},
    refs::SecretKeyRef,
};
use skep_config::{
    env,
    vmcp::{
        HeaderInjection, Strategy, StrategyAwsSts, StrategyRoleMapping, StrategyTokenExchange,
        UpstreamInject, Xaa,
    },
};

use super::{external_auth::token_type, flag, said, text};

/// Why a way cannot be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// A virtual MCP server does not know the type, or lacks what it needs.
    Unsupported(String),
    /// It does not say which of several providers' tokens it is about.
    Ambiguous(String),
}

impl Unusable {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Unsupported(message) | Self::Ambiguous(message) => message,
        }
    }
}

/// The way that the object of that name describes, which passed its check. `server` is the authorization server whose
/// users' tokens there are beside the caller's own.
pub(crate) fn strategy(
    name: &str,
    spec: &MCPExternalAuthConfigSpec,
    server: Option<&EmbeddedAuthServer>,
) -> Result<Strategy, Unusable> {
    let first = || server.and_then(|server| server.upstream_providers.first()).map(|one| provider(&one.name));
    Ok(if let Some(header) = &spec.header_injection {
        let header_injection = HeaderInjection {
            header_name: header.header_name.clone(),
            header_value: String::new(),
            header_value_env: env::header_injection_value(name),
        };
        Strategy { header_injection: Some(header_injection), ..Strategy::of("header_injection") }
    } else if let Some(exchange) = &spec.token_exchange {
        let token_exchange = Some(token_exchange(name, exchange, first()));
        Strategy { token_exchange, ..Strategy::of("token_exchange") }
    } else if let Some(inject) = &spec.upstream_inject {
        check_provider(&inject.provider_name, server)?;
        let upstream_inject = Some(UpstreamInject { provider_name: inject.provider_name.clone() });
        Strategy { upstream_inject, ..Strategy::of("upstream_inject") }
    } else if let Some(sts) = &spec.aws_sts {
        Strategy { aws_sts: Some(aws_sts(sts, first())), ..Strategy::of("aws_sts") }
    } else if let Some(access) = &spec.xaa {
        let several = server.is_some_and(|server| server.upstream_providers.len() > 1);
        if several && said(&access.subject_provider_name).is_none() {
            let message = "xaa.subjectProviderName: there are several upstream providers: name one of them";
            return Err(Unusable::Ambiguous(message.into()));
        }
        Strategy { xaa: Some(xaa(name, access, first())), ..Strategy::of("xaa") }
    } else if spec.type_ == ExternalAuthType::Unauthenticated {
        Strategy::of(Strategy::UNAUTHENTICATED)
    } else {
        let type_ = spec.type_.as_str();
        let message =
            format!("type: {type_:?} is nothing that a VirtualMCPServer can do: choose another one");
        return Err(Unusable::Unsupported(message));
    })
}

/// A provider without a name is known by this one.
pub(crate) fn provider(name: &str) -> String {
    if name.is_empty() { "default".into() } else { name.into() }
}

fn check_provider(name: &str, server: Option<&EmbeddedAuthServer>) -> Result<(), Unusable> {
    let Some(server) = server else {
        let message =
            "upstreamInject: nobody logs in upstream without an authorization server: set authServerConfig";
        return Err(Unusable::Unsupported(message.into()));
    };
    let known = server.upstream_providers.iter().any(|one| provider(&one.name) == name);
    if known {
        return Ok(());
    }
    let message =
        format!("upstreamInject.providerName: {name:?} is not among authServerConfig.upstreamProviders");
    Err(Unusable::Unsupported(message))
}

fn token_exchange(
    name: &str,
    exchange: &external_auth::TokenExchange,
    first: Option<String>,
) -> StrategyTokenExchange {
    let secret = exchange.client_secret_ref.as_ref().map(|_| env::token_exchange_secret(name));
    StrategyTokenExchange {
        token_url: exchange.token_url.clone(),
        client_id: text(&exchange.client_id),
        client_secret: String::new(),
        client_secret_env: secret.unwrap_or_default(),
        audience: exchange.audience.clone(),
        scopes: exchange.scopes.clone(),
        subject_token_type: said(&exchange.subject_token_type).map(token_type).unwrap_or_default(),
        subject_provider_name: named_or(&exchange.subject_provider_name, first),
    }
}

fn aws_sts(sts: &external_auth::AwsSts, first: Option<String>) -> StrategyAwsSts {
    let mappings = sts.role_mappings.iter().map(|mapping| StrategyRoleMapping {
        claim: text(&mapping.claim),
        matcher: text(&mapping.matcher),
        role_arn: mapping.role_arn.clone(),
        priority: mapping.priority,
    });
    StrategyAwsSts {
        region: sts.region.clone(),
        service: sts.service().into(),
        fallback_role_arn: text(&sts.fallback_role_arn),
        role_mappings: mappings.collect(),
        role_claim: sts.role_claim().into(),
        session_duration: Some(sts.session_duration()),
        session_name_claim: sts.session_name_claim().into(),
        subject_provider_name: named_or(&sts.subject_provider_name, first),
    }
}

fn xaa(name: &str, access: &external_auth::CrossAppAccess, first: Option<String>) -> Xaa {
    let variable =
        |secret: &Option<SecretKeyRef>, name: String| secret.as_ref().map(|_| name).unwrap_or_default();
    Xaa {
        idp_token_url: access.idp_token_url.clone(),
        idp_client_id: text(&access.idp_client_id),
        idp_client_secret: String::new(),
        idp_client_secret_env: variable(&access.idp_client_secret_ref, env::xaa_idp_secret(name)),
        target_token_url: access.target_token_url.clone(),
        insecure_target_token_url: flag(access.insecure_target_token_url),
        target_client_id: text(&access.target_client_id),
        target_client_secret: String::new(),
        target_client_secret_env: variable(&access.target_client_secret_ref, env::xaa_target_secret(name)),
        target_audience: access.target_audience.clone(),
        target_resource: text(&access.target_resource),
        scopes: access.scopes.clone(),
        subject_provider_name: named_or(&access.subject_provider_name, first),
        subject_token_type: text(&access.subject_token_type),
    }
}

/// The provider that is named, or the first one.
fn named_or(name: &Option<String>, first: Option<String>) -> String {
    said(name).map(Into::into).or(first).unwrap_or_default()
}

/// The variables with the secrets of the way that the object of that name describes.
pub(crate) fn variables<'a>(
    name: &str,
    spec: &'a MCPExternalAuthConfigSpec,
) -> impl Iterator<Item = (String, &'a SecretKeyRef)> {
    let (exchange, xaa) = (spec.token_exchange.as_ref(), spec.xaa.as_ref());
    let secrets = [
        (env::token_exchange_secret(name), exchange.and_then(|exchange| exchange.client_secret_ref.as_ref())),
        (
            env::header_injection_value(name),
            spec.header_injection.as_ref().map(|header| &header.value_secret_ref),
        ),
        (env::xaa_idp_secret(name), xaa.and_then(|xaa| xaa.idp_client_secret_ref.as_ref())),
        (env::xaa_target_secret(name), xaa.and_then(|xaa| xaa.target_client_secret_ref.as_ref())),
    ];
    secrets.into_iter().filter_map(|(name, secret)| Some((name, secret?)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::parts::samples::sample;

    fn server(providers: &[&str]) -> EmbeddedAuthServer {
        let providers: Vec<Value> =
            providers.iter().map(|name| json!({"name": name, "type": "oidc"})).collect();
        sample(json!({"issuer": "https://as.example", "upstreamProviders": providers}))
    }

    fn exchange() -> MCPExternalAuthConfigSpec {
        sample(json!({"type": "tokenExchange", "tokenExchange": {
            "tokenUrl": "https://sts.example", "audience": "b", "subjectTokenType": "jwt",
            "clientSecretRef": {"name": "s", "key": "k"},
        }}))
    }

    fn access() -> MCPExternalAuthConfigSpec {
        sample(json!({"type": "xaa", "xaa": {
            "idpTokenUrl": "https://idp.example", "targetTokenUrl": "https://b.example", "targetAudience": "b",
            "targetClientSecretRef": {"name": "s", "key": "t"},
        }}))
    }

    #[test]
    fn secrets_are_named_after_the_object_and_not_written() {
        let made = strategy("sts.eu", &exchange(), None).unwrap().token_exchange.unwrap();
        assert_eq!(made.client_secret_env, "TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET_STS_EU");
        assert_eq!(made.subject_token_type, "urn:ietf:params:oauth:token-type:jwt");
        assert_eq!(made.subject_provider_name, "", "the caller's own token");
        let spec = access();
        let names: Vec<String> = variables("x", &spec).map(|(name, _)| name).collect();
        assert_eq!(names, ["TOOLHIVE_XAA_TARGET_CLIENT_SECRET_X"]);
    }

    #[test]
    fn with_an_authorization_server_the_first_providers_token_is_meant() {
        let made = strategy("sts", &exchange(), Some(&server(&["corp", "other"]))).unwrap();
        assert_eq!(made.token_exchange.unwrap().subject_provider_name, "corp");
        let unnamed = strategy("x", &access(), Some(&server(&[""]))).unwrap();
        assert_eq!(unnamed.xaa.unwrap().subject_provider_name, "default");
        let several = strategy("x", &access(), Some(&server(&["corp", "other"])));
        assert!(matches!(several, Err(Unusable::Ambiguous(_))));
    }

    #[test]
    fn a_providers_token_can_be_passed_on_only_if_somebody_logs_in_there() {
        let spec = sample(json!({"type": "upstreamInject", "upstreamInject": {"providerName": "corp"}}));
        assert!(strategy("i", &spec, Some(&server(&["corp"]))).is_ok());
        for server in [None, Some(server(&["other"]))] {
            assert!(matches!(strategy("i", &spec, server.as_ref()), Err(Unusable::Unsupported(_))));
        }
    }

    #[test]
    fn what_only_a_proxy_does_is_refused() {
        let bearer = sample(
            json!({"type": "bearerToken", "bearerToken": {"tokenSecretRef": {"name": "s", "key": "k"}}}),
        );
        let error = strategy("b", &bearer, None).unwrap_err();
        assert!(error.message().starts_with("type: \"bearerToken\" "), "{error:?}");
    }
}
