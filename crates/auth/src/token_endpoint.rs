//! Token endpoints (RFC 6749, section 3.2), and this client of them.

use std::time::{Duration, Instant};

use http::{Uri, uri::Scheme};
use serde_json::Value;

use crate::{
    SetupError,
    fetch::{FetchError, Fetcher, Reach},
    form::{Credentials, post},
    limits,
};

/// A token endpoint.
pub(crate) struct TokenEndpoint {
    fetcher: Fetcher,
    uri: Uri,
    credentials: Option<Credentials>,
}

/// How a token is used. One of another type must not be used by a client that does not know the type (RFC 6749, section 7.1).
#[derive(Clone, Copy)]
pub(crate) enum TokenType {
    /// It is sent to servers as it is (RFC 6750).
    Bearer,
    /// It is no access token (RFC 8693, section 2.2.1).
    NotApplicable,
}

impl TokenType {
    fn check(self, token_type: &str) -> Result<(), &'static str> {
        let (name, mistake) = match self {
            Self::Bearer => ("Bearer", "its token_type is not Bearer"),
            Self::NotApplicable => ("N_A", "its token_type is not N_A"),
        };
        if token_type.eq_ignore_ascii_case(name) { Ok(()) } else { Err(mistake) }
    }
}

/// What an endpoint has issued.
pub(crate) struct Issued {
    pub(crate) token: String,
    /// What it is (RFC 8693, section 3).
    pub(crate) issued_type: Option<String>,
    /// When it expires. One without `expires_in` already has.
    expires: Instant,
}

impl Issued {
    /// Until when the token is used, so long before it expires.
    pub(crate) fn until(&self, margin: Duration) -> Instant {
        self.expires.checked_sub(margin).unwrap_or(self.expires)
    }
}

impl TokenEndpoint {
    /// The endpoint in a field. A client without credentials does not authenticate.
    ///
    /// Only the administrator sets it, so it may be within the cluster.
    pub(crate) fn new(field: &str, url: &str, credentials: Option<Credentials>) -> Result<Self, SetupError> {
        let fetcher = Fetcher::new(Reach { private: true, plain: true }, None)?;
        Ok(Self { uri: fetcher.address(field, url)?, fetcher, credentials })
    }

    /// The same with an endpoint that is encrypted, or on this machine.
    pub(crate) fn encrypted(
        field: &str,
        url: &str,
        credentials: Option<Credentials>,
    ) -> Result<Self, SetupError> {
        let endpoint = Self::new(field, url, credentials)?;
        if endpoint.uri.scheme() == Some(&Scheme::HTTPS) || is_loopback(&endpoint.uri) {
            return Ok(endpoint);
        }
        Err(SetupError::new(format!("{field}: must be https, or http on localhost")))
    }

    /// Whether this client authenticates.
    pub(crate) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// Requests a token of this type. Fields without a value are not sent.
    pub(crate) async fn request(
        &self,
        type_: TokenType,
        fields: &[(&str, &str)],
    ) -> Result<Issued, FetchError> {
        let fields: Vec<_> = fields.iter().copied().filter(|(_, value)| !value.is_empty()).collect();
        let mut request = post(&self.uri, &fields);
        if let Some(credentials) = &self.credentials {
            credentials.sign(&mut request);
        }
        let sent = Instant::now();
        let (status, answer) = self.fetcher.send(request, limits::EXCHANGE, limits::EXCHANGE_TIME).await?;
        if !status.is_success() {
            return Err(FetchError::status(&self.uri, status));
        }
        let answer = answer.ok_or_else(|| self.malformed("it is not a JSON object"))?;
        let text = |key| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let token = text("access_token").ok_or_else(|| self.malformed("it has no access_token"))?;
        if token.len() > limits::TOKEN {
            return Err(self.malformed("its access_token is too long"));
        }
        let token_type = text("token_type").ok_or_else(|| self.malformed("it has no token_type"))?;
        type_.check(token_type).map_err(|mistake| self.malformed(mistake))?;
        let life = answer.get("expires_in").and_then(Value::as_u64).unwrap_or_default();
        Ok(Issued {
            token: token.to_owned(),
            issued_type: text("issued_token_type").map(str::to_owned),
            // A bound, so that the sum of times cannot overflow.
            expires: sent + Duration::from_secs(life.min(24 * 60 * 60)),
        })
    }

    /// The response is malformed in this way.
    pub(crate) fn malformed(&self, what: &'static str) -> FetchError {
        FetchError::answer(&self.uri, what)
    }
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_only_sent_encrypted_or_to_this_machine() {
        for (url, is_accepted) in [
            ("https://idp.example/token", true),
            ("http://localhost:8080/token", true),
            ("http://127.0.0.1/token", true),
            ("http://[::1]:1/token", true),
            ("http://idp.example/token", false),
            ("http://localhost.evil.example/token", false),
            ("http://127.0.0.1.evil.example/token", false),
            ("http://10.0.0.1/token", false),
            ("ftp://localhost/token", false),
            ("/token", false),
        ] {
            let endpoint = TokenEndpoint::encrypted("tokenUrl", url, None);
            assert_eq!(endpoint.is_ok(), is_accepted, "{url}");
        }
    }
}
