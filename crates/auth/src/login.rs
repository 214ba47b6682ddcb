//! Users log in at an OpenID provider with their browser: authorization code with a proof key (OpenID Connect Core 1.0,
//! section 3.1, and RFC 7636).

use std::path::PathBuf;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{Request, StatusCode, Uri, uri::Scheme};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use skep_config::run_config::bare_issuer;
use tokio::sync::OnceCell;

use crate::{
    AuthenticationError, ExpectedIdToken, FetchError, Fetcher, IdTokenError, IssuerKeys, Pace, Reach,
    SetupError, claims,
    form::{Credentials, post},
    id_token_subject, limits,
};

/// This client of a provider.
#[derive(Clone, Default)]
pub struct LoginSettings {
    /// The issuer of the provider.
    pub issuer: String,
    /// The id of the client.
    pub client_id: String,
    /// Its secret. Without one, the client is public.
    pub client_secret: String,
    /// Where the provider sends browsers after a login.
    pub redirect_uri: String,
    /// The scopes to request. `openid` always is.
    pub scopes: Vec<String>,
    /// A file with the certificate authorities of the provider, instead of those of the system.
    pub authorities: Option<PathBuf>,
}

/// What binds the steps of one login to each other. Each value is random, and is used once.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginSecrets {
    /// Comes back with the browser.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: String,
    /// Proves that the client which exchanges the code is the one that began the login (RFC 7636).
    pub verifier: String,
}

/// Why a login failed. Nothing of a token or a code is in it.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The provider cannot be reached, or its response is malformed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The signature of the ID token could not be verified.
    #[error(transparent)]
    Signature(#[from] AuthenticationError),
    /// The ID token is not of this login.
    #[error(transparent)]
    IdToken(#[from] IdTokenError),
    /// The metadata of the provider is of no use.
    #[error("{0}")]
    Metadata(&'static str),
    /// The response comes from another provider.
    #[error("the response comes from another issuer")]
    OtherIssuer,
}

/// An OpenID provider.
pub struct LoginProvider {
    settings: LoginSettings,
    document: Uri,
    fetcher: Fetcher,
    keys: IssuerKeys,
    endpoints: OnceCell<Endpoints>,
}

/// The metadata of a provider.
struct Endpoints {
    authorize: String,
    token: Uri,
    /// Whether every response names the issuer (RFC 9207, section 3).
    names_issuer: bool,
    /// Whether the secret of a client belongs into the form.
    has_secret_in_form: bool,
}

impl LoginProvider {
    /// The provider of these settings. It is connected to when it is first needed. Only the administrator names it, so it may be
    /// within the cluster; all connections to it are encrypted.
    pub fn new(settings: LoginSettings) -> Result<Self, SetupError> {
        let fetcher = || Fetcher::new(Reach { private: true, plain: false }, settings.authorities.as_deref());
        let issuer = bare_issuer(&settings.issuer);
        let document = format!("{issuer}/.well-known/openid-configuration");
        let keys = IssuerKeys::new(fetcher()?, "", issuer, Pace::default())?;
        let fetcher = fetcher()?;
        let document = fetcher.address("issuer", &document)?;
        Ok(Self { document, fetcher, keys, endpoints: OnceCell::new(), settings })
    }

    /// The host of the provider.
    pub fn host(&self) -> &str {
        self.document.host().unwrap_or_default()
    }

    /// Where the browser goes to log in (OpenID Connect Core 1.0, section 3.1.2.1).
    pub async fn url(&self, secrets: &LoginSecrets) -> Result<String, LoginError> {
        let endpoints = self.endpoints().await?;
        let mut scopes = vec!["openid"];
        scopes.extend(self.settings.scopes.iter().map(String::as_str).filter(|scope| *scope != "openid"));
        let query = Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.settings.redirect_uri)
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &secrets.state)
            .append_pair("nonce", &secrets.nonce)
            .append_pair(
                "code_challenge",
                &URL_SAFE_NO_PAD.encode(Sha256::digest(secrets.verifier.as_bytes())),
            )
            .append_pair("code_challenge_method", "S256")
            .finish();
        let separator = if endpoints.authorize.contains('?') { '&' } else { '?' };
        Ok(format!("{}{separator}{query}", endpoints.authorize))
    }

    /// Exchanges the code of a login for its ID token, which is verified. `issuer` is the one that the response names, if it
    /// names one.
    pub async fn id_token(
        &self,
        code: &str,
        issuer: Option<&str>,
        secrets: &LoginSecrets,
    ) -> Result<String, LoginError> {
        let endpoints = self.endpoints().await?;
        let own = bare_issuer(&self.settings.issuer);
        // Otherwise another provider could get this code (RFC 9207, section 2.4).
        let is_own = match issuer {
            Some(issuer) => bare_issuer(issuer) == own,
            None => !endpoints.names_issuer,
        };
        if !is_own {
            return Err(LoginError::OtherIssuer);
        }
        let answer = self.exchange(endpoints, code, &secrets.verifier).await?;
        let malformed = |what| FetchError::answer(&endpoints.token, what);
        let token = answer.get("id_token").and_then(Value::as_str).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| malformed("it has no id_token"))?;
        let signed = self.keys.verify(token).await?;
        let expected = ExpectedIdToken {
            issuer: own,
            client_id: &self.settings.client_id,
            nonce: Some(&secrets.nonce),
            subject_claim: "sub",
            now: claims::now().as_secs(),
        };
        id_token_subject(&signed.claims, &expected)?;
        Ok(token.to_owned())
    }

    async fn exchange(
        &self,
        endpoints: &Endpoints,
        code: &str,
        verifier: &str,
    ) -> Result<Map<String, Value>, LoginError> {
        let LoginSettings { client_id, client_secret, redirect_uri, .. } = &self.settings;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let credentials =
            Credentials::new(client_id, client_secret).filter(|_| !endpoints.has_secret_in_form);
        if credentials.is_none() {
            form.push(("client_id", client_id));
            form.extend((!client_secret.is_empty()).then_some(("client_secret", &**client_secret)));
        }
        let mut request = post(&endpoints.token, &form);
        if let Some(credentials) = credentials {
            credentials.sign(&mut request);
        }
        match self.fetcher.send(request, limits::LOGIN, limits::FETCH_TIME).await? {
            (StatusCode::OK, Some(answer)) => Ok(answer),
            (StatusCode::OK, None) => {
                Err(FetchError::answer(&endpoints.token, "it is not a JSON object").into())
            }
            (status, _) => Err(FetchError::status(&endpoints.token, status).into()),
        }
    }

    async fn endpoints(&self) -> Result<&Endpoints, LoginError> {
        self.endpoints.get_or_try_init(|| self.discover()).await
    }

    async fn discover(&self) -> Result<Endpoints, LoginError> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.document.clone();
        let document = match self.fetcher.send(request, limits::DOCUMENT, limits::FETCH_TIME).await? {
            (StatusCode::OK, Some(document)) => document,
            (StatusCode::OK, None) => {
                return Err(FetchError::answer(&self.document, "it is not a JSON object").into());
            }
            (status, _) => return Err(FetchError::status(&self.document, status).into()),
        };
        described(&document, bare_issuer(&self.settings.issuer)).map_err(LoginError::Metadata)
    }
}

/// The endpoints in a document of this issuer.
fn described(document: &Map<String, Value>, issuer: &str) -> Result<Endpoints, &'static str> {
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    // Otherwise one issuer could impersonate another (OpenID Connect Discovery 1.0, section 4.3).
    if bare_issuer(text("issuer")) != issuer {
        return Err("the metadata of the provider describes another issuer");
    }
    let authorize: Option<Uri> = text("authorization_endpoint").parse().ok();
    // Browsers are sent there.
    if authorize.is_none_or(|uri| uri.scheme() != Some(&Scheme::HTTPS) || uri.host().is_none()) {
        return Err("the authorization_endpoint of the provider is not an address of https");
    }
    let methods: Vec<&str> = document
        .get("token_endpoint_auth_methods_supported")
        .and_then(Value::as_array)
        .map(|methods| methods.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    Ok(Endpoints {
        authorize: text("authorization_endpoint").to_owned(),
        token: text("token_endpoint").parse().map_err(|_| "the provider has no token_endpoint")?,
        names_issuer: document.get("authorization_response_iss_parameter_supported")
            == Some(&Value::Bool(true)),
        has_secret_in_form: methods.contains(&"client_secret_post")
            && !methods.contains(&"client_secret_basic"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_metadata_must_be_of_the_issuer_and_lead_browsers_to_https() {
        let good = json!({
            "issuer": "https://idp.example/", "authorization_endpoint": "https://idp.example/auth",
            "token_endpoint": "https://idp.example/token",
        });
        let check = |changes: Value| {
            let mut document = good.as_object().unwrap().clone();
            document.extend(changes.as_object().unwrap().clone());
            described(&document, "https://idp.example").map(|endpoints| endpoints.has_secret_in_form)
        };
        assert_eq!(check(json!({})), Ok(false));
        let post = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
        assert_eq!(check(post), Ok(true));
        for wrong in [
            json!({"issuer": "https://evil.example"}),
            json!({"authorization_endpoint": "http://idp.example/auth"}),
            json!({"authorization_endpoint": "javascript:alert(1)"}),
            json!({"authorization_endpoint": null}),
            json!({"token_endpoint": ""}),
        ] {
            assert!(check(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
