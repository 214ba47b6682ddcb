//! MCPExternalAuthConfig of a virtual MCP server: how it authenticates to one of its backends. The operator writes it into the
//! configuration, and the server itself reads it of members that it discovers.

use skep_config::{FieldError, env};

use crate::{
    external_auth::{self, OnBehalfOf, token_type},
    kinds::{ExternalAuthType, MCPExternalAuthConfigSpec},
    refs::SecretKeyRef,
    vmcp::{
        AwsSts, BackendAuthStrategy, HeaderInjection, Obo, RoleMapping, TokenExchange, UpstreamInject, Xaa,
    },
};

/// The login service of Microsoft for all but national clouds.
const AUTHORITY: &str = "https://login.microsoftonline.com";

/// Why an object cannot be used by a virtual MCP server. Fields are those of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyError {
    /// A virtual MCP server does not support the type, or lacks what the type needs.
    Unsupported(FieldError),
    /// It does not name the provider whose tokens are used, and there are several.
    Ambiguous(FieldError),
}

impl StrategyError {
    /// The error, with the field.
    pub fn error(&self) -> &FieldError {
        match self {
            Self::Unsupported(error) | Self::Ambiguous(error) => error,
        }
    }
}

/// The strategy of the object with this name. `providers` are those of the authorization server, whose tokens are available
/// beside the caller's own. Secrets are in the environment: see [`variables`].
pub fn strategy(
    name: &str,
    spec: &MCPExternalAuthConfigSpec,
    providers: Option<&[String]>,
) -> Result<BackendAuthStrategy, StrategyError> {
    let first = || providers.and_then(|providers| providers.first()).cloned();
    Ok(if let Some(header) = &spec.header_injection {
        let header_injection = HeaderInjection {
            header_name: header.header_name.clone(),
            header_value: None,
            header_value_env: Some(env::header_injection_value(name)),
        };
        BackendAuthStrategy {
            header_injection: Some(header_injection),
            ..BackendAuthStrategy::of("header_injection")
        }
    } else if let Some(exchange) = &spec.token_exchange {
        let token_exchange = Some(token_exchange(name, exchange, first()));
        BackendAuthStrategy { token_exchange, ..BackendAuthStrategy::of("token_exchange") }
    } else if let Some(inject) = &spec.upstream_inject {
        check_provider(&inject.provider_name, providers)?;
        let upstream_inject = Some(UpstreamInject { provider_name: inject.provider_name.clone() });
        BackendAuthStrategy { upstream_inject, ..BackendAuthStrategy::of("upstream_inject") }
    } else if let Some(sts) = &spec.aws_sts {
        BackendAuthStrategy { aws_sts: Some(aws_sts(sts, first())), ..BackendAuthStrategy::of("aws_sts") }
    } else if let Some(access) = &spec.xaa {
        let several = providers.is_some_and(|providers| providers.len() > 1);
        if several && non_empty(&access.subject_provider_name).is_none() {
            let message = "is required with several upstream providers: name one of them";
            return Err(StrategyError::Ambiguous(FieldError::new("xaa.subjectProviderName", message)));
        }
        BackendAuthStrategy { xaa: Some(xaa(name, access, first())), ..BackendAuthStrategy::of("xaa") }
    } else if let Some(flow) = &spec.obo {
        if let Some(error) = on_behalf_of_errors(flow).into_iter().next() {
            return Err(StrategyError::Unsupported(error.within("obo")));
        }
        BackendAuthStrategy { obo: Some(obo(name, flow)), ..BackendAuthStrategy::of("obo") }
    } else if spec.type_ == ExternalAuthType::Unauthenticated {
        BackendAuthStrategy::of(BackendAuthStrategy::UNAUTHENTICATED)
    } else {
        let type_ = spec.type_.as_str();
        let message = format!("a VirtualMCPServer does not support {type_:?}: choose another type");
        return Err(StrategyError::Unsupported(FieldError::new("type", message)));
    })
}

/// The name of a provider. One without a name has a default.
pub fn provider(name: &str) -> String {
    if name.is_empty() { "default".into() } else { name.into() }
}

fn check_provider(name: &str, providers: Option<&[String]>) -> Result<(), StrategyError> {
    let Some(providers) = providers else {
        let message = "there are no upstream tokens without an authorization server: set authServerConfig";
        return Err(StrategyError::Unsupported(FieldError::new("upstreamInject", message)));
    };
    if providers.iter().any(|one| one == name) {
        return Ok(());
    }
    let message = format!("{name:?} is not one of authServerConfig.upstreamProviders");
    Err(StrategyError::Unsupported(FieldError::new("upstreamInject.providerName", message)))
}

fn token_exchange(
    name: &str,
    exchange: &external_auth::TokenExchange,
    first: Option<String>,
) -> TokenExchange {
    let secret = exchange.client_secret_ref.as_ref().map(|_| env::token_exchange_secret(name));
    TokenExchange {
        token_url: exchange.token_url.clone(),
        client_id: set(&exchange.client_id),
        client_secret: None,
        client_secret_env: secret,
        audience: Some(exchange.audience.clone()).filter(|audience| !audience.is_empty()),
        scopes: exchange.scopes.clone(),
        subject_token_type: non_empty(&exchange.subject_token_type).map(token_type),
        subject_provider_name: named_or(&exchange.subject_provider_name, first),
    }
}

fn aws_sts(sts: &external_auth::AwsSts, first: Option<String>) -> AwsSts {
    let mappings = sts.role_mappings.iter().map(|mapping| RoleMapping {
        claim: set(&mapping.claim),
        matcher: set(&mapping.matcher),
        role_arn: mapping.role_arn.clone(),
        priority: mapping.priority.map(Into::into),
    });
    AwsSts {
        region: sts.region.clone(),
        service: Some(sts.service().into()),
        fallback_role_arn: set(&sts.fallback_role_arn),
        role_mappings: mappings.collect(),
        role_claim: Some(sts.role_claim().into()),
        session_duration: Some(sts.session_duration()),
        session_name_claim: Some(sts.session_name_claim().into()),
        subject_provider_name: named_or(&sts.subject_provider_name, first),
    }
}

fn xaa(name: &str, access: &external_auth::CrossAppAccess, first: Option<String>) -> Xaa {
    let variable = |secret: &Option<SecretKeyRef>, name: String| secret.as_ref().map(|_| name);
    Xaa {
        idp_token_url: access.idp_token_url.clone(),
        idp_client_id: set(&access.idp_client_id),
        idp_client_secret: None,
        idp_client_secret_env: variable(&access.idp_client_secret_ref, env::xaa_idp_secret(name)),
        target_token_url: access.target_token_url.clone(),
        insecure_target_token_url: access.insecure_target_token_url.filter(|insecure| *insecure),
        target_client_id: set(&access.target_client_id),
        target_client_secret: None,
        target_client_secret_env: variable(&access.target_client_secret_ref, env::xaa_target_secret(name)),
        target_audience: access.target_audience.clone(),
        target_resource: set(&access.target_resource),
        scopes: access.scopes.clone(),
        subject_provider_name: named_or(&access.subject_provider_name, first),
        subject_token_type: set(&access.subject_token_type),
    }
}

/// What the on-behalf-of flow lacks.
pub fn on_behalf_of_errors(flow: &OnBehalfOf) -> Vec<FieldError> {
    let missing = [
        ("tenantId", non_empty(&flow.tenant_id).is_none()),
        ("clientId", non_empty(&flow.client_id).is_none()),
        ("clientSecretRef", flow.client_secret_ref.is_none()),
    ];
    let missing = missing.into_iter().filter(|(_, is_missing)| *is_missing);
    let mut errors: Vec<_> = missing.map(|(field, _)| FieldError::new(field, "is required")).collect();
    if non_empty(&flow.audience).is_none() && flow.scopes.is_empty() {
        errors.push(FieldError::new(
            "audience",
            "the token is for no application: set audience, scopes or both",
        ));
    }
    errors
}

fn obo(name: &str, flow: &OnBehalfOf) -> Obo {
    let authority = non_empty(&flow.authority).unwrap_or(AUTHORITY).trim_end_matches('/');
    let tenant = flow.tenant_id.as_deref().unwrap_or_default();
    let skew = flow.cache_skew.as_ref().and_then(|skew| skew.to_std().ok());
    Obo {
        token_url: format!("{authority}/{tenant}/oauth2/v2.0/token"),
        client_id: set(&flow.client_id),
        client_secret: None,
        client_secret_env: flow.client_secret_ref.as_ref().map(|_| env::obo_secret(name)),
        audience: set(&flow.audience),
        scopes: flow.scopes.clone(),
        subject_token_provider_name: set(&flow.subject_token_provider_name),
        cache_skew_seconds: skew.and_then(|skew| i32::try_from(skew.as_secs()).ok()),
    }
}

/// A field, unless it is empty.
fn non_empty(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

fn set(text: &Option<String>) -> Option<String> {
    non_empty(text).map(Into::into)
}

/// The named provider, or the first one.
fn named_or(name: &Option<String>, first: Option<String>) -> Option<String> {
    set(name).or(first)
}

/// The variables with the secrets of the object with this name.
pub fn variables<'a>(
    name: &str,
    spec: &'a MCPExternalAuthConfigSpec,
) -> impl Iterator<Item = (String, &'a SecretKeyRef)> {
    let (exchange, xaa) = (spec.token_exchange.as_ref(), spec.xaa.as_ref());
    let obo = spec.obo.as_ref();
    let secrets = [
        (env::token_exchange_secret(name), exchange.and_then(|exchange| exchange.client_secret_ref.as_ref())),
        (
            env::header_injection_value(name),
            spec.header_injection.as_ref().map(|header| &header.value_secret_ref),
        ),
        (env::xaa_idp_secret(name), xaa.and_then(|xaa| xaa.idp_client_secret_ref.as_ref())),
        (env::xaa_target_secret(name), xaa.and_then(|xaa| xaa.target_client_secret_ref.as_ref())),
        (env::obo_secret(name), obo.and_then(|obo| obo.client_secret_ref.as_ref())),
    ];
    secrets.into_iter().filter_map(|(name, secret)| Some((name, secret?)))
}

impl BackendAuthStrategy {
    /// Replaces the names of variables by the secrets that they hold, as far as `secret` knows them.
    pub fn with_secrets(mut self, secret: impl Fn(&str) -> Option<String>) -> Self {
        let reveal = |value: &mut Option<String>, variable: &mut Option<String>| {
            if let Some(secret) = variable.as_deref().and_then(&secret) {
                (*value, *variable) = (Some(secret), None);
            }
        };
        if let Some(header) = &mut self.header_injection {
            reveal(&mut header.header_value, &mut header.header_value_env);
        }
        if let Some(exchange) = &mut self.token_exchange {
            reveal(&mut exchange.client_secret, &mut exchange.client_secret_env);
        }
        if let Some(flow) = &mut self.obo {
            reveal(&mut flow.client_secret, &mut flow.client_secret_env);
        }
        if let Some(access) = &mut self.xaa {
            reveal(&mut access.idp_client_secret, &mut access.idp_client_secret_env);
            reveal(&mut access.target_client_secret, &mut access.target_client_secret_env);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn sample(spec: Value) -> MCPExternalAuthConfigSpec {
        serde_json::from_value(spec).unwrap()
    }

    fn names(providers: &[&str]) -> Vec<String> {
        providers.iter().map(|name| provider(name)).collect()
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
    fn the_variables_of_secrets_are_named_after_the_object() {
        let built = strategy("sts.eu", &exchange(), None).unwrap().token_exchange.unwrap();
        assert_eq!(built.client_secret_env.as_deref(), Some("TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET_STS_EU"));
        assert_eq!(built.subject_token_type.as_deref(), Some("urn:ietf:params:oauth:token-type:jwt"));
        assert_eq!(built.subject_provider_name, None, "the caller's own token");
        let spec = access();
        let names: Vec<String> = variables("x", &spec).map(|(name, _)| name).collect();
        assert_eq!(names, ["TOOLHIVE_XAA_TARGET_CLIENT_SECRET_X"]);
    }

    #[test]
    fn with_an_authorization_server_the_first_providers_token_is_the_default() {
        let built = strategy("sts", &exchange(), Some(&names(&["corp", "other"]))).unwrap();
        assert_eq!(built.token_exchange.unwrap().subject_provider_name.as_deref(), Some("corp"));
        let unnamed = strategy("x", &access(), Some(&names(&[""]))).unwrap();
        assert_eq!(unnamed.xaa.unwrap().subject_provider_name.as_deref(), Some("default"));
        let several = strategy("x", &access(), Some(&names(&["corp", "other"])));
        assert!(matches!(several, Err(StrategyError::Ambiguous(_))));
    }

    #[test]
    fn a_providers_token_can_be_injected_only_if_users_log_in_there() {
        let spec = sample(json!({"type": "upstreamInject", "upstreamInject": {"providerName": "corp"}}));
        assert!(strategy("i", &spec, Some(&names(&["corp"]))).is_ok());
        for providers in [None, Some(names(&["other"]))] {
            assert!(matches!(strategy("i", &spec, providers.as_deref()), Err(StrategyError::Unsupported(_))));
        }
    }

    #[test]
    fn a_type_for_proxies_only_is_rejected() {
        let bearer = sample(
            json!({"type": "bearerToken", "bearerToken": {"tokenSecretRef": {"name": "s", "key": "k"}}}),
        );
        let error = strategy("b", &bearer, None).unwrap_err();
        let message = "type: a VirtualMCPServer does not support \"bearerToken\": choose another type";
        assert_eq!(error.error().to_string(), message);
    }

    #[test]
    fn on_behalf_of_needs_a_tenant_a_client_and_an_application() {
        let obo = |fields: Value| sample(json!({"type": "obo", "obo": fields}));
        let whole = json!({
            "tenantId": "contoso.example", "clientId": "app", "clientSecretRef": {"name": "s", "key": "k"},
            "audience": "api://files", "cacheSkew": "1m30s",
        });
        let spec = obo(whole.clone());
        let built = strategy("o", &spec, None).unwrap();
        let expected = Obo {
            token_url: "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token".into(),
            client_id: Some("app".into()),
            client_secret_env: Some("TOOLHIVE_OBO_CLIENT_SECRET_O".into()),
            audience: Some("api://files".into()),
            cache_skew_seconds: Some(90),
            ..Obo::default()
        };
        assert_eq!(built.obo.as_ref(), Some(&expected));
        assert_eq!(
            variables("o", &spec).map(|(name, _)| name).collect::<Vec<_>>(),
            ["TOOLHIVE_OBO_CLIENT_SECRET_O"]
        );
        let secrets = BTreeMap::from([("TOOLHIVE_OBO_CLIENT_SECRET_O".to_owned(), "s3cret".to_owned())]);
        let revealed = built.with_secrets(|name| secrets.get(name).cloned()).obo.unwrap();
        assert_eq!((revealed.client_secret.as_deref(), revealed.client_secret_env), (Some("s3cret"), None));
        for field in ["tenantId", "clientId", "clientSecretRef", "audience"] {
            let mut lacking = whole.clone();
            lacking.as_object_mut().unwrap().remove(field);
            let error = strategy("o", &obo(lacking), None).unwrap_err();
            assert_eq!(error.error().field.to_string(), format!("obo.{field}"));
        }
    }
}
