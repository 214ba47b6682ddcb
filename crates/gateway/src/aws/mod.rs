//! Requests that are signed for AWS, with credentials of the role that a caller's claims select.

mod roles;

use std::sync::Arc;

use http::{HeaderMap, Method, Uri};
use jiff::Timestamp;
use serde_json::Value;
use skep_auth::aws::{Credentials, Signer, Sts, StsError};
use skep_config::run_config;
use tracing::warn;

use crate::{identity::Identity, limits};
use roles::Roles;

const SERVICE: &str = "aws-mcp";
const SESSION_NAME_CLAIM: &str = "sub";
/// How long credentials may be valid, in seconds, and how long they are by default.
const SECONDS: std::ops::RangeInclusive<u32> = 900..=43_200;
const DEFAULT_SECONDS: u32 = 3_600;

/// Gets credentials of AWS for callers, and signs requests with them.
pub struct RoleSigner {
    roles: Roles,
    session_name_claim: String,
    sts: Sts,
    signer: Signer,
}

/// Why a request cannot be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    /// The caller is unknown, or has no token.
    #[error("a token is required")]
    NoToken,
    /// The claim with the name of the AWS session is missing or invalid.
    #[error("the token has no valid claim for the name of the AWS session")]
    NoSessionName,
    /// AWS rejects the token.
    #[error("AWS rejected the token")]
    Rejected,
    /// AWS is unavailable.
    #[error("AWS STS is unavailable")]
    Unavailable,
    /// No role is mapped to this caller.
    #[error("no AWS role is mapped to this caller")]
    NoRole,
    /// The signature covers the body, which must be in memory.
    #[error("the body is too large to be signed")]
    TooLarge,
    /// A part of the request cannot be signed.
    #[error("the request cannot be signed")]
    Signature,
}

impl RoleSigner {
    /// Signs as configured, with credentials of the region's service. An error names the field.
    pub fn new(config: &run_config::AwsSts) -> Result<Self, String> {
        let region = &config.region;
        // It becomes a part of an address.
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(fits) {
            return Err(format!("region: {region:?} is no region of AWS: write it as eu-west-1"));
        }
        Self::with_sts(config, |seconds| Sts::new(region, seconds))
    }

    /// The same with the service at this address.
    pub fn at(config: &run_config::AwsSts, endpoint: &str) -> Result<Self, String> {
        Self::with_sts(config, |seconds| Sts::at(endpoint, seconds))
    }

    fn with_sts(
        config: &run_config::AwsSts,
        sts: impl FnOnce(u32) -> Result<Sts, skep_auth::SetupError>,
    ) -> Result<Self, String> {
        let seconds = if config.session_duration == 0 { DEFAULT_SECONDS } else { config.session_duration };
        if !SECONDS.contains(&seconds) {
            return Err(format!("session_duration: {seconds} is not from 900 to 43200"));
        }
        let named =
            |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
        Ok(Self {
            roles: Roles::new(config)?,
            session_name_claim: named(&config.session_name_claim, SESSION_NAME_CLAIM),
            sts: sts(seconds).map_err(|error| error.to_string())?,
            signer: Signer::new(&config.region, &named(&config.service, SERVICE)),
        })
    }

    /// The credentials of a caller, for this token.
    pub async fn credentials(
        &self,
        identity: &Identity,
        token: &str,
    ) -> Result<Arc<Credentials>, SigningError> {
        let role = self.roles.of(&identity.claims).ok_or(SigningError::NoRole)?;
        let session = identity.claims.get(&self.session_name_claim).and_then(Value::as_str);
        let session = session.filter(|name| is_session_name(name)).ok_or(SigningError::NoSessionName)?;
        self.sts.credentials(role, session, token).await.map_err(|error| {
            warn!(%error, role, "no credentials from AWS STS");
            if matches!(error, StsError::Rejected(_)) {
                SigningError::Rejected
            } else {
                SigningError::Unavailable
            }
        })
    }

    /// Replaces the signature in these headers by that of a request for this address.
    pub fn sign(
        &self,
        credentials: &Credentials,
        (method, uri): (&Method, &Uri),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), SigningError> {
        if body.len() > limits::SIGNED_BODY {
            return Err(SigningError::TooLarge);
        }
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let signed = self.signer.sign(credentials, &time, (method, uri), headers, body);
        signed.map_err(|_| SigningError::Signature)
    }
}

/// Whether AWS accepts a name for a session.
fn is_session_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte);
    (2..=64).contains(&name.len()) && name.bytes().all(fits)
}
