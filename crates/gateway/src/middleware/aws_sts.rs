//! Requests that are signed for AWS, in place of the caller's token.
//!
//! The token is exchanged for credentials of a role, which its claims select; with these the request is signed, as it
//! will be sent.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, uri::PathAndQuery};
use skep_auth::{aws::Credentials, bearer};
use skep_config::run_config::{AwsStsParameters, Oidc};
use skep_mcp::Rejection;
use tracing::info;

use super::{ChainContext, provider_token::ProviderToken};
use crate::{
    ConfigError,
    aws::{RoleSigner, SigningError},
    http::{Body, ErrorResponse, response},
    message::{Exchange, SignRequest},
    outbound::Target,
};

/// When a caller should retry, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");

/// Signs requests.
pub(crate) struct AwsSts {
    /// Whose token is exchanged, if not the one that the caller or an earlier middleware sends.
    provider: Option<ProviderToken>,
    place: Arc<Place>,
}

/// What signatures are valid for.
struct Place {
    signer: RoleSigner,
    target: Target,
}

/// The signing of one caller's requests, with credentials of AWS.
struct Signing {
    credentials: Arc<Credentials>,
    place: Arc<Place>,
}

impl AwsSts {
    /// `oidc` is how callers are authenticated.
    pub(super) fn new(
        parameters: &AwsStsParameters,
        oidc: Option<&Oidc>,
        context: &ChainContext<'_>,
    ) -> Result<Self, ConfigError> {
        let wrong = |error: &dyn std::fmt::Display| ConfigError::new(format!("awssts: {error}"));
        let config = &parameters.aws_sts_config;
        let signer = RoleSigner::new(config).map_err(|error| wrong(&error))?;
        if parameters.target_url != context.remote_url || context.remote_url.is_empty() {
            return Err(wrong(&"target_url: it must be remote_url: only what is sent there is signed"));
        }
        let (field, name) = ("awssts: subject_provider_name", &config.subject_provider_name);
        let provider = match name.is_empty() {
            true => None,
            false => Some(ProviderToken::new(field, name, oidc, context)?),
        };
        let target = Target::remote(&parameters.target_url, context.transport);
        let target = target.map_err(|error| wrong(&error))?;
        Ok(Self { provider, place: Arc::new(Place { signer, target }) })
    }

    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let reject = |error| Box::new(rejected(error));
        let identity = exchange.caller.identity.clone().ok_or_else(|| reject(SigningError::NoToken))?;
        let token = match &self.provider {
            Some(provider) => provider.of(&identity, exchange).await?,
            None => {
                let token = bearer(&exchange.headers).map_err(|_| reject(SigningError::NoToken))?;
                token.to_owned()
            }
        };
        let credentials = self.place.signer.credentials(&identity, &token).await.map_err(reject)?;
        let signing = Signing { credentials, place: self.place.clone() };
        exchange.caller.authorization = exchange.headers.get(header::AUTHORIZATION).cloned();
        let requested = (&exchange.method, &exchange.path);
        signing.sign(requested, &mut exchange.headers, &exchange.body).map_err(reject)?;
        exchange.caller.signer = Some(Arc::new(signing));
        Ok(())
    }
}

impl Signing {
    fn sign(
        &self,
        (method, path): (&Method, &PathAndQuery),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), SigningError> {
        let Place { signer, target } = &*self.place;
        // The address that it is sent to, which for a remote server is not the requested one.
        let uri = target.uri(method, path, None).ok_or(SigningError::Signature)?;
        signer.sign(&self.credentials, (method, &uri), headers, body)
    }
}

impl SignRequest for Signing {
    fn sign(
        &self,
        requested: (&Method, &PathAndQuery),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), Rejection> {
        self.sign(requested, headers, body).map_err(|_| Rejection::Internal)
    }
}

fn rejected(error: SigningError) -> Response<Body> {
    info!(%error, "request not signed for AWS");
    let status = match error {
        SigningError::NoToken | SigningError::NoSessionName | SigningError::Rejected => {
            StatusCode::UNAUTHORIZED
        }
        SigningError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        SigningError::NoRole => StatusCode::FORBIDDEN,
        SigningError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        SigningError::Signature => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut answer = response::text(status, format!("{error}\n"));
    if error == SigningError::Unavailable {
        answer.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    answer
}

#[cfg(test)]
mod tests;
