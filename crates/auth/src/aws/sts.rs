//! Credentials of AWS for a caller's token: `AssumeRoleWithWebIdentity`, which needs no credentials itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use http::{StatusCode, Uri};
use roxmltree::Document;

use super::Credentials;
use crate::{
    SetupError,
    fetch::{FetchError, Fetcher, Reach},
    fetched::Fetched,
    form::post,
    limits,
};

/// Error codes that are about AWS, and not about the caller.
const TRANSIENT: [&str; 4] = ["IDPCommunicationError", "InternalFailure", "ServiceUnavailable", "Throttling"];

/// Why there are no credentials. The message contains no part of the token.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StsError {
    /// AWS rejects this token or role.
    #[error("AWS does not give credentials for this token and role: {0}")]
    Rejected(String),
    /// AWS is unavailable.
    #[error("{0}")]
    Unavailable(String),
}

impl From<FetchError> for StsError {
    fn from(error: FetchError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Fetches credentials, and caches them for the token and role until shortly before they expire.
///
/// The cache is by token and not by caller: a role's trust policy may depend on more than the subject.
pub struct Sts {
    service: Arc<Service>,
    known: Fetched<Arc<Credentials>, StsError>,
}

/// The service of a region.
struct Service {
    fetcher: Fetcher,
    endpoint: Uri,
    seconds: u32,
}

impl Sts {
    /// Uses the service of a region. Credentials are valid for so many seconds.
    pub fn new(region: &str, seconds: u32) -> Result<Self, SetupError> {
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        Self::at(&format!("https://sts.{region}.{domain}/"), seconds)
    }

    /// Uses the service at this address.
    pub fn at(endpoint: &str, seconds: u32) -> Result<Self, SetupError> {
        // The address follows from the region. With a VPC endpoint it is a private one.
        let fetcher = Fetcher::new(Reach { private: true, plain: true }, None)?;
        let service = Service { endpoint: fetcher.address("region", endpoint)?, fetcher, seconds };
        Ok(Self { service: Arc::new(service), known: Fetched::new() })
    }

    /// The credentials of a role for the caller with this token.
    pub async fn credentials(
        &self,
        role: &str,
        session: &str,
        token: &str,
    ) -> Result<Arc<Credentials>, StsError> {
        // Neither of the two contains a line break.
        let key = format!("{role}\n{session}\n{token}");
        let fetch = || {
            let (service, sent) = (self.service.clone(), Instant::now());
            let (role, session, token) = (role.to_owned(), session.to_owned(), token.to_owned());
            async move {
                let credentials = Arc::new(service.assume_role(&role, &session, &token).await?);
                let life = Duration::from_secs(service.seconds.into());
                Ok((credentials, sent + life.saturating_sub(limits::CREDENTIALS_MARGIN)))
            }
            .boxed()
        };
        self.known.get(&key, fetch).await
    }
}

impl Service {
    async fn assume_role(&self, role: &str, session: &str, token: &str) -> Result<Credentials, StsError> {
        let seconds = self.seconds.to_string();
        let request = post(
            &self.endpoint,
            &[
                ("Action", "AssumeRoleWithWebIdentity"),
                ("Version", "2011-06-15"),
                ("RoleArn", role),
                ("RoleSessionName", session),
                ("WebIdentityToken", token),
                ("DurationSeconds", &seconds),
            ],
        );
        let (status, body) = self.fetcher.bytes(request, limits::STS, limits::FETCH_TIME).await?;
        let text = std::str::from_utf8(&body).unwrap_or_default();
        if status.is_success() {
            let malformed = || FetchError::answer(&self.endpoint, "it has no credentials");
            return Ok(credentials(text).ok_or_else(malformed)?);
        }
        let code = code(text);
        let transient = TRANSIENT.iter().any(|known| code.starts_with(known));
        if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS && !transient {
            return Err(StsError::Rejected(code));
        }
        Err(FetchError::status(&self.endpoint, status).into())
    }
}

fn credentials(xml: &str) -> Option<Credentials> {
    let document = Document::parse(xml).ok()?;
    let node = document.descendants().find(|node| node.tag_name().name() == "Credentials")?;
    let text = |name| {
        let node = node.children().find(|node| node.tag_name().name() == name)?;
        node.text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Some(Credentials {
        access_key_id: text("AccessKeyId")?,
        secret_access_key: text("SecretAccessKey")?,
        session_token: text("SessionToken")?,
    })
}

/// The code of an error. Its message is not used because it may quote the token.
fn code(xml: &str) -> String {
    let code = Document::parse(xml).ok().and_then(|document| {
        let node = document.descendants().find(|node| node.tag_name().name() == "Code")?;
        node.text().map(str::trim).map(str::to_owned)
    });
    code.filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .unwrap_or_else(|| "no reason given".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_that_of_the_region() {
        for (region, expected) in [
            ("eu-west-1", "https://sts.eu-west-1.amazonaws.com/"),
            ("us-gov-west-1", "https://sts.us-gov-west-1.amazonaws.com/"),
            ("cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn/"),
        ] {
            assert_eq!(Sts::new(region, 900).unwrap().service.endpoint, expected);
        }
    }
}
