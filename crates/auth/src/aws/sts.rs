//! Credentials of AWS in place of a caller's token: `AssumeRoleWithWebIdentity`, which needs no credentials itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{StatusCode, Uri};
use roxmltree::Document;

use super::Credentials;
use crate::{
    SetupError,
    cache::Cache,
    fetch::{FetchError, Fetcher, Reach},
    form::post,
    limits,
};

/// Codes of refusals that are about AWS, and not about the caller.
const TRANSIENT: [&str; 4] = ["IDPCommunicationError", "InternalFailure", "ServiceUnavailable", "Throttling"];

/// Why there are no credentials. It says nothing of the token.
#[derive(Debug, thiserror::Error)]
pub enum StsError {
    /// AWS does not give any for this token and role.
    #[error("AWS does not give credentials for this token and role: {0}")]
    Refused(String),
    /// AWS cannot be asked at the moment.
    #[error("{0}")]
    Unavailable(String),
}

impl From<FetchError> for StsError {
    fn from(error: FetchError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Gets credentials, and uses them again for the same token and role until shortly before they end.
///
/// They are kept by the token and not by who it is of: what a role asks of a token may be more than whose it is.
pub struct Sts {
    fetcher: Fetcher,
    endpoint: Uri,
    seconds: u32,
    known: Cache<Arc<Credentials>>,
}

impl Sts {
    /// Asks the service in a region for credentials that are good for so many seconds.
    pub fn new(region: &str, seconds: u32) -> Result<Self, SetupError> {
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        Self::at(&format!("https://sts.{region}.{domain}/"), seconds)
    }

    /// Asks the service at this address.
    pub fn at(endpoint: &str, seconds: u32) -> Result<Self, SetupError> {
        // The address is made from the region. In a private network it is a private one.
        let fetcher = Fetcher::new(Reach { private: true, plain: true }, None)?;
        Ok(Self { endpoint: fetcher.address("region", endpoint)?, fetcher, seconds, known: Cache::new() })
    }

    /// The credentials of a role for the caller with this token.
    pub async fn credentials(
        &self,
        role: &str,
        session: &str,
        token: &str,
    ) -> Result<Arc<Credentials>, StsError> {
        // None of the two has a line break in it.
        let key = format!("{role}\n{session}\n{token}");
        if let Some(known) = self.known.get(&key, Instant::now()) {
            return Ok(known);
        }
        let asked = Instant::now();
        let credentials = Arc::new(self.asked(role, session, token).await?);
        let life = Duration::from_secs(self.seconds.into()).saturating_sub(limits::CREDENTIALS_MARGIN);
        self.known.put(&key, credentials.clone(), asked + life, Instant::now());
        Ok(credentials)
    }

    async fn asked(&self, role: &str, session: &str, token: &str) -> Result<Credentials, StsError> {
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
            let wrong = || FetchError::answer(&self.endpoint, "there are no credentials in it");
            return Ok(credentials(text).ok_or_else(wrong)?);
        }
        let code = code(text);
        let transient = TRANSIENT.iter().any(|known| code.starts_with(known));
        if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS && !transient {
            return Err(StsError::Refused(code));
        }
        Err(FetchError::status(&self.endpoint, status).into())
    }
}

fn credentials(xml: &str) -> Option<Credentials> {
    let document = Document::parse(xml).ok()?;
    let found = document.descendants().find(|node| node.tag_name().name() == "Credentials")?;
    let text = |name| {
        let node = found.children().find(|node| node.tag_name().name() == name)?;
        node.text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Some(Credentials {
        access_key_id: text("AccessKeyId")?,
        secret_access_key: text("SecretAccessKey")?,
        session_token: text("SessionToken")?,
    })
}

/// The code of an error, which is a word of AWS. Its message may quote the token.
fn code(xml: &str) -> String {
    let found = Document::parse(xml).ok().and_then(|document| {
        let node = document.descendants().find(|node| node.tag_name().name() == "Code")?;
        node.text().map(str::trim).map(str::to_owned)
    });
    found
        .filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .unwrap_or_else(|| "for no reason that it tells".to_owned())
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
            assert_eq!(Sts::new(region, 900).unwrap().endpoint, expected);
        }
    }
}
