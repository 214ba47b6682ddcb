//! Signatures of AWS in place of the caller's token.
//!
//! The token becomes credentials of a role, which its claims choose; with these the request is signed, as it will be
//! sent.

mod roles;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, uri::PathAndQuery};
use jiff::Timestamp;
use serde_json::Value;
use skep_auth::{
    aws::{Signer, Sts, StsError},
    bearer,
};
use skep_config::run_config::{AwsStsParameters, Transport};
use tracing::{info, warn};

use super::unsupported_auth_server;
use crate::{
    ConfigError,
    http::{Body, ErrorResponse, response},
    identity::Identity,
    limits,
    message::Exchange,
    outbound::Target,
};
use roles::Roles;

const SERVICE: &str = "aws-mcp";
const SESSION_NAME_CLAIM: &str = "sub";
/// How long credentials may be good for, in seconds, and how long they are.
const SECONDS: std::ops::RangeInclusive<u32> = 900..=43_200;
const USUAL_SECONDS: u32 = 3_600;
/// When a caller should come back, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");

/// Signs requests.
pub(crate) struct AwsSts {
    roles: Roles,
    session_name_claim: String,
    sts: Sts,
    signer: Signer,
    target: Target,
}

/// Why a request is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unsigned {
    /// The caller is unknown, or has no token.
    NoToken,
    /// What should name the session of AWS does not.
    NoSessionName,
    /// AWS does not take the token.
    Refused,
    /// AWS is unavailable.
    Unavailable,
    /// No role is for this caller.
    NoRole,
    TooLarge,
    CannotSign,
}

impl AwsSts {
    pub(super) fn new(
        parameters: &AwsStsParameters,
        remote_url: &str,
        transport: Transport,
    ) -> Result<Self, ConfigError> {
        let region = &parameters.aws_sts_config.region;
        // It becomes a part of an address.
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(fits) {
            return Err(wrong(&format!("region: {region:?} is no region of AWS: write it as eu-west-1")));
        }
        if parameters.target_url != remote_url || remote_url.is_empty() {
            return Err(wrong(&"target_url: it must be remote_url: only what is sent there is signed"));
        }
        Self::asking(parameters, transport, |seconds| Sts::new(region, seconds))
    }

    fn asking(
        parameters: &AwsStsParameters,
        transport: Transport,
        sts: impl FnOnce(u32) -> Result<Sts, skep_auth::SetupError>,
    ) -> Result<Self, ConfigError> {
        let config = &parameters.aws_sts_config;
        if !config.subject_provider_name.is_empty() {
            return Err(unsupported_auth_server("awssts: subject_provider_name"));
        }
        let seconds = if config.session_duration == 0 { USUAL_SECONDS } else { config.session_duration };
        if !SECONDS.contains(&seconds) {
            return Err(wrong(&format!("session_duration: {seconds} is not from 900 to 43200")));
        }
        let named =
            |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
        Ok(Self {
            roles: Roles::new(config).map_err(|error| wrong(&error))?,
            session_name_claim: named(&config.session_name_claim, SESSION_NAME_CLAIM),
            sts: sts(seconds).map_err(|error| wrong(&error))?,
            signer: Signer::new(&config.region, &named(&config.service, SERVICE)),
            target: Target::remote(&parameters.target_url, transport).map_err(|error| wrong(&error))?,
        })
    }

    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let identity = exchange.identity.clone();
        let asked = (&exchange.method, &exchange.path);
        let signed = self.signed(identity.as_deref(), asked, &mut exchange.headers, &exchange.body).await;
        signed.map_err(|unsigned| Box::new(refused(unsigned)))
    }

    async fn signed(
        &self,
        identity: Option<&Identity>,
        (method, path): (&Method, &PathAndQuery),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), Unsigned> {
        let (Some(identity), Ok(token)) = (identity, bearer(headers)) else { return Err(Unsigned::NoToken) };
        if body.len() > limits::SIGNED_BODY {
            return Err(Unsigned::TooLarge);
        }
        let role = self.roles.of(&identity.claims).ok_or(Unsigned::NoRole)?;
        let session = identity.claims.get(&self.session_name_claim).and_then(Value::as_str);
        let session = session.filter(|name| is_session_name(name)).ok_or(Unsigned::NoSessionName)?;
        let credentials = self.sts.credentials(role, session, token).await.map_err(|error| {
            warn!(%error, role, "there are no credentials of AWS");
            if matches!(error, StsError::Refused(_)) { Unsigned::Refused } else { Unsigned::Unavailable }
        })?;
        // The address that it is sent to, which for a remote server is not the requested one.
        let uri = self.target.uri(method, path, None).ok_or(Unsigned::CannotSign)?;
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let signed = self.signer.sign(&credentials, &time, (method, &uri), headers, body);
        signed.map_err(|_| Unsigned::CannotSign)
    }
}

fn wrong(error: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::new(format!("awssts: {error}"))
}

/// What AWS takes for the name of a session.
fn is_session_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte);
    (2..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn refused(unsigned: Unsigned) -> Response<Body> {
    info!(?unsigned, "a request is not signed for AWS");
    let (status, words) = match unsigned {
        Unsigned::NoToken => (StatusCode::UNAUTHORIZED, "a token is needed\n"),
        Unsigned::NoSessionName => (StatusCode::UNAUTHORIZED, "the token does not name a session of AWS\n"),
        Unsigned::Refused => (StatusCode::UNAUTHORIZED, "AWS does not take the token\n"),
        Unsigned::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "AWS cannot be asked at the moment\n"),
        Unsigned::NoRole => (StatusCode::FORBIDDEN, "there is no role of AWS for this caller\n"),
        Unsigned::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large to be signed\n"),
        Unsigned::CannotSign => (StatusCode::INTERNAL_SERVER_ERROR, "the request cannot be signed\n"),
    };
    let mut answer = response::text(status, words);
    if unsigned == Unsigned::Unavailable {
        answer.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    answer
}

#[cfg(test)]
mod tests;
