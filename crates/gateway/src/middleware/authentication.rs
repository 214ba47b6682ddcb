//! Authentication of callers.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use skep_auth::{AuthenticationError, Authenticator, Pace, ProtectedResource};
use skep_config::{env, run_config::Auth};
use tracing::info;

use super::{ChainContext, secret};
use crate::{
    AuthorizationServer, ConfigError,
    http::{ErrorResponse, response},
    identity::Identity,
    limits,
    message::Exchange,
};

/// When a caller whose token could not be checked should retry, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");

/// How callers are authenticated.
pub(crate) enum Authentication {
    /// Callers are anonymous: all are one local user.
    Local(Arc<Identity>),
    /// By the tokens of an issuer.
    Tokens {
        authenticator: Box<Authenticator>,
        resource: ProtectedResource,
        /// The issuer, if it is in this process.
        own: Option<Arc<dyn AuthorizationServer>>,
    },
}

impl Authentication {
    pub(super) fn new(parameters: &Auth, context: &ChainContext<'_>) -> Result<Self, ConfigError> {
        let Some(oidc) = &parameters.oidc_config else {
            return Ok(Self::Local(Arc::new(context.unauthenticated.clone())));
        };
        let resource = ProtectedResource::new(oidc, context.server);
        // Where this process issues tokens, no others are accepted: the end of a session is known of its own alone.
        if let Some(server) = context.extras.authorization_server.clone() {
            if !oidc.accepts_issuer(server.issuer()) {
                return Err(ConfigError::new(format!(
                    "auth: oidc_config: Issuer must be that of the authorization server of this proxy, {}",
                    server.issuer()
                )));
            }
            let authenticator = Box::new(Authenticator::of_own(server.clone(), &oidc.audience));
            return Ok(Self::Tokens { authenticator, resource, own: Some(server) });
        }
        let is_set = |name| std::env::var(name).is_ok_and(|value| value == "true");
        let mut settings = oidc.clone();
        settings.insecure_allow_http |= is_set(env::INSECURE_DISABLE_URL_VALIDATION);
        if is_set(env::SKIP_OIDC_DISCOVERY) && oidc.jwks_url.is_empty() && !oidc.issuer.is_empty() {
            let variable = env::SKIP_OIDC_DISCOVERY;
            return Err(ConfigError::new(format!(
                "auth: oidc_config: JWKSURL is missing, and {variable} is set"
            )));
        }
        let secret = secret(&oidc.client_secret, env::OIDC_CLIENT_SECRET);
        let authenticator = Authenticator::new(&settings, &secret, Pace::default())
            .map_err(|error| ConfigError::new(format!("auth: oidc_config: {error}")))?;
        Ok(Self::Tokens { authenticator: Box::new(authenticator), resource, own: None })
    }

    /// Whether the issuer's keys are there, if callers have tokens of another process. The error is why they are not.
    pub(super) async fn check_issuer(&self) -> Option<Result<(), String>> {
        match self {
            Self::Tokens { authenticator, own: None, .. } => Some(authenticator.check().await),
            Self::Local(_) | Self::Tokens { .. } => None,
        }
    }

    /// The end of the session of a caller, if it is one of this process: it is looked for now and then.
    pub(super) fn end_of_session(
        &self,
        caller: &Identity,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let Self::Tokens { own: Some(server), .. } = self else { return None };
        Some(session_end(server.clone(), caller.session.clone()?))
    }

    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        exchange.caller.identity = Some(match self {
            Self::Local(identity) => identity.clone(),
            Self::Tokens { authenticator, resource, own } => {
                let identity = authenticator.identity(&exchange.headers).await;
                let identity = identity.map_err(|error| rejected(&error, resource, &exchange.headers))?;
                if let (Some(server), Some(session)) = (own, &identity.session) {
                    let checked = server.check_session(session).await;
                    checked.map_err(|error| rejected(&error, resource, &exchange.headers))?;
                }
                identity
            }
        });
        Ok(())
    }
}

/// The end of a session, which is looked for now and then. A server that cannot tell now is asked again.
pub(super) async fn session_end(server: Arc<dyn AuthorizationServer>, session: String) {
    loop {
        tokio::time::sleep(limits::SESSION_CHECK).await;
        if let Err(AuthenticationError::Token(_)) = server.check_session(&session).await {
            return;
        }
    }
}

/// The response to an unauthenticated caller. It has no id, as the message is not considered.
pub(super) fn rejected(
    error: &AuthenticationError,
    resource: &ProtectedResource,
    headers: &HeaderMap,
) -> ErrorResponse {
    info!(reason = %error, "unauthenticated request rejected");
    let body = json!({"error": error.code(), "error_description": error.to_string()}).to_string();
    let (status, name, value) = match error {
        AuthenticationError::Unavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, header::RETRY_AFTER, RETRY_AFTER)
        }
        _ => (StatusCode::UNAUTHORIZED, header::WWW_AUTHENTICATE, resource.challenge(error, headers)),
    };
    let mut answer = response::json(status, body);
    answer.headers_mut().insert(name, value);
    Box::new(answer)
}
