//! The source of an issuer's keys.

use std::{fs, path::PathBuf};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header, uri::Scheme};
use serde_json::{Map, Value};
use skep_config::run_config::bare_issuer;

use super::KeySet;
use crate::{
    SetupError,
    fetch::{FetchError, Fetcher},
    limits,
};

/// The source of an issuer's keys.
pub(crate) struct Source {
    fetcher: Fetcher,
    place: Place,
    /// A file with a token for the issuer. Kubernetes rotates it, so it is read each time.
    token: Option<PathBuf>,
    /// Whether only the issuer's own certificate authority is trusted. Then the token may go to another host of the issuer:
    /// the API server of a cluster names an address of itself.
    has_own_authority: bool,
}

enum Place {
    /// The address of the keys.
    Keys(Uri),
    /// The address of the issuer's metadata, which names that of the keys (OpenID Connect Discovery).
    Discovered { issuer: String, document: Uri },
}

impl Source {
    /// The keys at an address, or those of an issuer.
    pub(crate) fn new(
        fetcher: Fetcher,
        keys: &str,
        issuer: &str,
        token: Option<PathBuf>,
        has_own_authority: bool,
    ) -> Result<Self, SetupError> {
        let place = if keys.is_empty() {
            let issuer = bare_issuer(issuer).to_owned();
            let document =
                fetcher.address("Issuer", &format!("{issuer}/.well-known/openid-configuration"))?;
            Place::Discovered { issuer, document }
        } else {
            Place::Keys(fetcher.address("JWKSURL", keys)?)
        };
        Ok(Self { fetcher, place, token, has_own_authority })
    }

    /// Fetches the current keys.
    pub(super) async fn fetch(&self) -> Result<KeySet, FetchError> {
        let discovered;
        let uri = match &self.place {
            Place::Keys(uri) => uri,
            Place::Discovered { issuer, document } => {
                discovered = self.discover(issuer, document).await?;
                &discovered
            }
        };
        let keys = self.document(uri).await?;
        // While keys are replaced, there may be none for a moment: those of before stay valid.
        KeySet::of(&keys).ok_or_else(|| FetchError::answer(uri, "it has no usable keys"))
    }

    async fn discover(&self, issuer: &str, uri: &Uri) -> Result<Uri, FetchError> {
        let document = self.document(uri).await?;
        let text = |key| document.get(key).and_then(Value::as_str).unwrap_or_default();
        // Otherwise one issuer could impersonate another (OpenID Connect Discovery 1.0, section 4.3).
        if bare_issuer(text("issuer")) != issuer {
            return Err(FetchError::answer(uri, "it describes another issuer"));
        }
        text("jwks_uri").parse().map_err(|_| FetchError::answer(uri, "its jwks_uri is not a URL"))
    }

    /// Whether the token is for this address, and not only for the one that is configured.
    fn may_have_token(&self, uri: &Uri) -> bool {
        let (Place::Keys(configured) | Place::Discovered { document: configured, .. }) = &self.place;
        let is_same_host = uri.scheme() == configured.scheme() && uri.authority() == configured.authority();
        is_same_host || (self.has_own_authority && uri.scheme() == Some(&Scheme::HTTPS))
    }

    async fn document(&self, uri: &Uri) -> Result<Map<String, Value>, FetchError> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = uri.clone();
        if let Some(path) = self.token.as_ref().filter(|_| self.may_have_token(uri)) {
            let unreadable = || FetchError::TokenFile(path.display().to_string());
            let token = fs::read_to_string(path).map_err(|_| unreadable())?;
            let token = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
            let mut token = token.map_err(|_| unreadable())?;
            token.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, token);
        }
        match self.fetcher.send(request, limits::DOCUMENT, limits::FETCH_TIME).await? {
            (StatusCode::OK, Some(document)) => Ok(document),
            (StatusCode::OK, None) => Err(FetchError::answer(uri, "it is not a JSON object")),
            (status, _) => Err(FetchError::status(uri, status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use skep_testkit::IdentityProvider;

    use super::*;
    use crate::fetch::Reach;

    fn source(issuer: &str, private: bool) -> Source {
        let fetcher = Fetcher::new(Reach { private, plain: true }, None).unwrap();
        Source::new(fetcher, "", issuer, None, false).unwrap()
    }

    #[test]
    fn the_token_of_the_issuer_is_sent_to_no_other_host() {
        let source = |has_own_authority| {
            let fetcher = Fetcher::new(Reach { private: true, plain: true }, None).unwrap();
            Source::new(fetcher, "", "https://a.example", None, has_own_authority).unwrap()
        };
        let has = |source: &Source, uri: &str| source.may_have_token(&uri.parse().unwrap());
        for source in [source(false), source(true)] {
            assert!(has(&source, "https://a.example/keys"));
            assert!(!has(&source, "http://a.example/keys") && !has(&source, "http://10.0.0.1/keys"));
        }
        // Another host shows a certificate of the same authority.
        assert!(has(&source(true), "https://10.0.0.1:6443/openid/v1/jwks"));
        assert!(!has(&source(false), "https://10.0.0.1:6443/openid/v1/jwks"));
    }

    /// On loopback, issuer and keys are both private, so the two steps are tested separately.
    #[tokio::test]
    async fn issuer_metadata_cannot_lead_into_the_private_network() {
        let (issuer, inner) = (IdentityProvider::start().await, IdentityProvider::start().await);
        let document = "/.well-known/openid-configuration";
        let keys = format!("{}/keys", inner.issuer);
        issuer.answer(document, serde_json::json!({"issuer": issuer.issuer, "jwks_uri": keys}));
        let described = source(&issuer.issuer, true);
        let uri = described
            .discover(&issuer.issuer, &format!("{}{document}", issuer.issuer).parse().unwrap())
            .await
            .unwrap();
        assert_eq!(uri, *keys);
        let error = source(&issuer.issuer, false).document(&uri).await.unwrap_err().to_string();
        assert!(error.contains("its address is private, which is not allowed"), "{error}");
        assert!(inner.requests("/keys").is_empty());
        described.document(&uri).await.unwrap();
    }
}
