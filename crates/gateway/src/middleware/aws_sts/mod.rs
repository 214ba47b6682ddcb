//! Requests that are signed for AWS, in place of the caller's token.
//!
//! The token is exchanged for credentials of a role, which its claims select; with these the request is signed, as it
//! will be sent.

mod roles;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, uri::PathAndQuery};
use jiff::Timestamp;
use serde_json::Value;
use skep_auth::{
    aws::{Credentials, Signer, Sts, StsError},
    bearer,
};
use skep_config::run_config::{AwsStsParameters, Transport};
use skep_mcp::Rejection;
use tracing::{info, warn};

use super::{ChainContext, provider::Provider};
use crate::{
    ConfigError, ProviderTokenError,
    http::{Body, ErrorResponse, response},
    identity::Identity,
    limits,
    message::{Exchange, SignRequest},
    outbound::Target,
};
use roles::Roles;

const SERVICE: &str = "aws-mcp";
const SESSION_NAME_CLAIM: &str = "sub";
/// How long credentials may be valid, in seconds, and how long they are by default.
const SECONDS: std::ops::RangeInclusive<u32> = 900..=43_200;
const DEFAULT_SECONDS: u32 = 3_600;
/// When a caller should retry, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");

/// Signs requests.
pub(crate) struct AwsSts {
    /// Whose token is exchanged, if not the one that the caller or an earlier middleware sends.
    provider: Option<Provider>,
    roles: Roles,
    session_name_claim: String,
    sts: Sts,
    place: Arc<Place>,
}

/// What signatures are valid for.
struct Place {
    signer: Signer,
    target: Target,
}

/// The signing of one caller's requests, with credentials of AWS.
struct Signing {
    credentials: Arc<Credentials>,
    place: Arc<Place>,
}

/// Why a request cannot be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SigningError {
    /// The caller is unknown, or has no token.
    NoToken,
    /// The claim with the name of the AWS session is missing or invalid.
    NoSessionName,
    /// AWS rejects the token.
    Rejected,
    /// AWS is unavailable.
    Unavailable,
    /// No role is mapped to this caller.
    NoRole,
    TooLarge,
    Signature,
}

impl AwsSts {
    pub(super) fn new(
        parameters: &AwsStsParameters,
        context: &ChainContext<'_>,
    ) -> Result<Self, ConfigError> {
        let region = &parameters.aws_sts_config.region;
        // It becomes a part of an address.
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(fits) {
            return Err(wrong(&format!("region: {region:?} is no region of AWS: write it as eu-west-1")));
        }
        if parameters.target_url != context.remote_url || context.remote_url.is_empty() {
            return Err(wrong(&"target_url: it must be remote_url: only what is sent there is signed"));
        }
        let provider = &parameters.aws_sts_config.subject_provider_name;
        let field = "awssts: subject_provider_name";
        let provider = (!provider.is_empty()).then(|| Provider::new(field, provider, context)).transpose()?;
        let signing = Self::with_sts(parameters, context.transport, |seconds| Sts::new(region, seconds))?;
        Ok(Self { provider, ..signing })
    }

    fn with_sts(
        parameters: &AwsStsParameters,
        transport: Transport,
        sts: impl FnOnce(u32) -> Result<Sts, skep_auth::SetupError>,
    ) -> Result<Self, ConfigError> {
        let config = &parameters.aws_sts_config;
        let seconds = if config.session_duration == 0 { DEFAULT_SECONDS } else { config.session_duration };
        if !SECONDS.contains(&seconds) {
            return Err(wrong(&format!("session_duration: {seconds} is not from 900 to 43200")));
        }
        let named =
            |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
        Ok(Self {
            provider: None,
            roles: Roles::new(config).map_err(|error| wrong(&error))?,
            session_name_claim: named(&config.session_name_claim, SESSION_NAME_CLAIM),
            sts: sts(seconds).map_err(|error| wrong(&error))?,
            place: Arc::new(Place {
                signer: Signer::new(&config.region, &named(&config.service, SERVICE)),
                target: Target::remote(&parameters.target_url, transport).map_err(|error| wrong(&error))?,
            }),
        })
    }

    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let reject = |error| Box::new(rejected(error));
        let signing = self.signing(exchange.identity.as_deref(), &exchange.headers).await.map_err(reject)?;
        exchange.authorization = exchange.headers.get(header::AUTHORIZATION).cloned();
        let requested = (&exchange.method, &exchange.path);
        signing.sign(requested, &mut exchange.headers, &exchange.body).map_err(reject)?;
        exchange.signer = Some(Arc::new(signing));
        Ok(())
    }

    /// The signing of requests of this caller.
    async fn signing(
        &self,
        identity: Option<&Identity>,
        headers: &HeaderMap,
    ) -> Result<Signing, SigningError> {
        let identity = identity.ok_or(SigningError::NoToken)?;
        let token = match &self.provider {
            Some(provider) => provider.token(identity).await.map_err(|error| match error {
                ProviderTokenError::Unavailable => SigningError::Unavailable,
                _ => SigningError::NoToken,
            })?,
            None => bearer(headers).map_err(|_| SigningError::NoToken)?.to_owned(),
        };
        let role = self.roles.of(&identity.claims).ok_or(SigningError::NoRole)?;
        let session = identity.claims.get(&self.session_name_claim).and_then(Value::as_str);
        let session = session.filter(|name| is_session_name(name)).ok_or(SigningError::NoSessionName)?;
        let credentials = self.sts.credentials(role, session, &token).await.map_err(|error| {
            warn!(%error, role, "no credentials from AWS STS");
            if matches!(error, StsError::Rejected(_)) {
                SigningError::Rejected
            } else {
                SigningError::Unavailable
            }
        })?;
        Ok(Signing { credentials, place: self.place.clone() })
    }
}

impl Signing {
    fn sign(
        &self,
        (method, path): (&Method, &PathAndQuery),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), SigningError> {
        if body.len() > limits::SIGNED_BODY {
            return Err(SigningError::TooLarge);
        }
        let Place { signer, target } = &*self.place;
        // The address that it is sent to, which for a remote server is not the requested one.
        let uri = target.uri(method, path, None).ok_or(SigningError::Signature)?;
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let signed = signer.sign(&self.credentials, &time, (method, &uri), headers, body);
        signed.map_err(|_| SigningError::Signature)
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

fn wrong(error: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::new(format!("awssts: {error}"))
}

/// Whether AWS accepts a name for a session.
fn is_session_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte);
    (2..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn rejected(error: SigningError) -> Response<Body> {
    info!(?error, "request not signed for AWS");
    let (status, message) = match error {
        SigningError::NoToken => (StatusCode::UNAUTHORIZED, "a token is required\n"),
        SigningError::NoSessionName => {
            (StatusCode::UNAUTHORIZED, "the token has no valid claim for the name of the AWS session\n")
        }
        SigningError::Rejected => (StatusCode::UNAUTHORIZED, "AWS rejected the token\n"),
        SigningError::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "AWS STS is unavailable\n"),
        SigningError::NoRole => (StatusCode::FORBIDDEN, "no AWS role is mapped to this caller\n"),
        SigningError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large to be signed\n"),
        SigningError::Signature => (StatusCode::INTERNAL_SERVER_ERROR, "the request cannot be signed\n"),
    };
    let mut answer = response::text(status, message);
    if error == SigningError::Unavailable {
        answer.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    answer
}

#[cfg(test)]
mod tests;
