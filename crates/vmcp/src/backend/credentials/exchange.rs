//! A token of the caller, exchanged for one that the backend accepts.

use std::time::Duration;

use skep_api::vmcp::{BackendAuthStrategy, Obo, TokenExchange, Xaa};
use skep_auth::{
    CrossAppAccess, CrossAppConfig, ExchangeError, Exchanger, OnBehalfOf, OnBehalfOfConfig, SetupError,
    TokenClient, limits::EXCHANGE_MARGIN,
};
use skep_config::{FieldError, run_config};
use tracing::{debug, warn};

use super::{Server, block, secret, subject::Subject, text};
use crate::backend::{BackendError, Caller};

const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
/// Scopes of OpenID Connect, which belong to no application.
const OWN_SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// Exchanges tokens of callers.
pub(crate) struct Exchange {
    subject: Subject,
    flow: Flow,
}

/// How they are exchanged.
enum Flow {
    /// By a token service (RFC 8693).
    TokenExchange(Exchanger),
    /// By the Microsoft identity platform.
    OnBehalfOf(OnBehalfOf),
    /// By an identity provider, and then by the authorization server of the backend.
    CrossApp(CrossAppAccess),
}

impl Exchange {
    pub(super) fn new(strategy: &BackendAuthStrategy, server: Server<'_>) -> Result<Self, FieldError> {
        match &*strategy.type_ {
            "token_exchange" => {
                let exchange = block("tokenExchange", &strategy.token_exchange)?;
                token_exchange(exchange, server).map_err(|error| error.within("tokenExchange"))
            }
            "obo" => {
                let flow = block("obo", &strategy.obo)?;
                on_behalf_of(flow, server).map_err(|error| error.within("obo"))
            }
            "xaa" => {
                let access = block("xaa", &strategy.xaa)?;
                cross_app(access, server).map_err(|error| error.within("xaa"))
            }
            other => Err(FieldError::new("type", format!("{other:?} is not supported by this version"))),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.flow {
            Flow::TokenExchange(_) => "token_exchange",
            Flow::OnBehalfOf(_) => "obo",
            Flow::CrossApp(_) => "xaa",
        }
    }

    /// The token for a caller, or of the virtual server itself, which may have none.
    pub(super) async fn token(&self, caller: &Caller) -> Result<Option<String>, BackendError> {
        let exchanged = match self.subject.token(caller).await? {
            Some(subject) => Some(self.flow.exchange(&subject).await),
            None => self.flow.own_token().await,
        };
        exchanged.transpose().map_err(|error| {
            warn!(%error, strategy = self.kind(), "token exchange failed");
            BackendError::NoCredentials("the token of the caller could not be exchanged".into())
        })
    }
}

impl Exchange {
    /// Forgets a token that the backend has rejected. Returns whether another one may be accepted.
    pub(super) async fn forget(&self, caller: &Caller, rejected: &str) -> bool {
        let Ok(Some(subject)) = self.subject.token(caller).await else { return false };
        match &self.flow {
            Flow::TokenExchange(exchanger) => exchanger.forget(&subject, rejected),
            Flow::OnBehalfOf(flow) => flow.forget(&subject, rejected),
            Flow::CrossApp(access) => access.forget(&subject, rejected),
        }
    }
}

impl Flow {
    async fn exchange(&self, subject: &str) -> Result<String, ExchangeError> {
        match self {
            Self::TokenExchange(exchanger) => exchanger.exchange(subject).await,
            Self::OnBehalfOf(flow) => flow.exchange(subject).await,
            Self::CrossApp(access) => access.exchange(subject).await,
        }
    }

    /// The token with which the virtual server lists the backend by itself.
    async fn own_token(&self) -> Option<Result<String, ExchangeError>> {
        match self {
            Self::TokenExchange(exchanger) => exchanger.own_token().await,
            Self::OnBehalfOf(_) => None,
            // Many targets issue tokens for assertions alone: then the backend is listed without a credential.
            Self::CrossApp(access) => access.own_token().await.filter(|token| {
                token
                    .as_ref()
                    .inspect_err(|error| debug!(%error, "no token of the virtual server itself"))
                    .is_ok()
            }),
        }
    }
}

fn token_exchange(exchange: &TokenExchange, server: Server<'_>) -> Result<Exchange, FieldError> {
    let secret = secret("clientSecretEnv", &exchange.client_secret, &exchange.client_secret_env)?;
    let config = run_config::TokenExchange {
        token_url: exchange.token_url.clone(),
        client_id: text(&exchange.client_id),
        audience: text(&exchange.audience),
        scopes: exchange.scopes.clone(),
        subject_token_type: text(&exchange.subject_token_type),
        ..run_config::TokenExchange::default()
    };
    let exchanger = Exchanger::new(&config, &secret);
    Ok(Exchange {
        subject: Subject::or_first(&exchange.subject_provider_name, server)?,
        flow: Flow::TokenExchange(exchanger.map_err(|error| FieldError::new("tokenUrl", error.to_string()))?),
    })
}

fn on_behalf_of(flow: &Obo, server: Server<'_>) -> Result<Exchange, FieldError> {
    if flow.client_secret.is_some() && flow.client_secret_env.is_some() {
        return Err(FieldError::new("clientSecret", "or clientSecretEnv must be set, and not both"));
    }
    let client_secret = secret("clientSecretEnv", &flow.client_secret, &flow.client_secret_env)?;
    let margin = match flow.cache_skew_seconds {
        None | Some(0) => EXCHANGE_MARGIN,
        Some(seconds) => {
            let seconds = u64::try_from(seconds);
            Duration::from_secs(seconds.map_err(|_| FieldError::new("cacheSkewSeconds", "is negative"))?)
        }
    };
    let config = OnBehalfOfConfig {
        token_url: flow.token_url.clone(),
        client_id: text(&flow.client_id),
        client_secret,
        scope: scope(flow)?,
        margin,
    };
    Ok(Exchange {
        subject: Subject::named("subjectTokenProviderName", &flow.subject_token_provider_name, server)?,
        flow: Flow::OnBehalfOf(OnBehalfOf::new(config).map_err(named)?),
    })
}

/// The scopes of the application, which the platform knows by their full names; or all that the caller has consented to.
fn scope(flow: &Obo) -> Result<String, FieldError> {
    let audience = flow.audience.as_deref().filter(|audience| !audience.is_empty());
    match (audience, &flow.scopes[..]) {
        (None, []) => Err(FieldError::new("scopes", "or audience must be set")),
        (Some(audience), []) => Ok(format!("{audience}/.default")),
        (audience, scopes) => {
            let full = scopes.iter().map(|scope| match audience {
                Some(audience) if !scope.contains("://") && !OWN_SCOPES.contains(&&**scope) => {
                    format!("{audience}/{scope}")
                }
                _ => scope.clone(),
            });
            Ok(full.collect::<Vec<_>>().join(" "))
        }
    }
}

fn cross_app(access: &Xaa, server: Server<'_>) -> Result<Exchange, FieldError> {
    if access.subject_token_type.as_deref().is_some_and(|type_| !matches!(type_, "" | ID_TOKEN)) {
        return Err(FieldError::new("subjectTokenType", format!("must be {ID_TOKEN}")));
    }
    if access.target_audience.is_empty() {
        return Err(FieldError::new("targetAudience", "is required"));
    }
    let provider = TokenClient {
        token_url: access.idp_token_url.clone(),
        client_id: text(&access.idp_client_id),
        client_secret: secret(
            "idpClientSecretEnv",
            &access.idp_client_secret,
            &access.idp_client_secret_env,
        )?,
    };
    let target = TokenClient {
        token_url: access.target_token_url.clone(),
        client_id: text(&access.target_client_id),
        client_secret: secret(
            "targetClientSecretEnv",
            &access.target_client_secret,
            &access.target_client_secret_env,
        )?,
    };
    let config = CrossAppConfig {
        provider,
        target,
        is_target_insecure: access.insecure_target_token_url == Some(true),
        audience: access.target_audience.clone(),
        resource: text(&access.target_resource),
        scopes: access.scopes.clone(),
    };
    Ok(Exchange {
        subject: Subject::id_token(&access.subject_provider_name, server)?,
        flow: Flow::CrossApp(CrossAppAccess::new(&config).map_err(named)?),
    })
}

/// An error that names its field itself.
fn named(error: SetupError) -> FieldError {
    FieldError::new("", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_of_an_application_have_its_name() {
        let obo = |audience: Option<&str>, scopes: &[&str]| {
            let scopes = scopes.iter().map(|&scope| scope.into()).collect();
            scope(&Obo { audience: audience.map(Into::into), scopes, ..Obo::default() }).ok()
        };
        let app = Some("api://files");
        assert_eq!(obo(app, &[]).as_deref(), Some("api://files/.default"));
        assert_eq!(
            obo(app, &["read", "offline_access", "https://graph.example/mail"]).as_deref(),
            Some("api://files/read offline_access https://graph.example/mail")
        );
        assert_eq!(obo(None, &["user.read"]).as_deref(), Some("user.read"));
        assert_eq!(obo(None, &[]), None);
    }
}
