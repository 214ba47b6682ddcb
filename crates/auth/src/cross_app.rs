//! Cross-app access: the identity provider of the caller issues an assertion for another application (ID-JAG, RFC 8693), and
//! the authorization server of that application issues an access token for it (RFC 7523).

use std::sync::Arc;

use futures::FutureExt;
use serde_json::Value;

use crate::{
    SetupError,
    exchange::{ExchangeError, GRANT, Tokens, own_token},
    fetched::Fetch,
    form::Credentials,
    jwt::Jwt,
    limits,
    on_behalf_of::JWT_BEARER,
    token_endpoint::{Issued, TokenEndpoint, TokenType},
};

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// A client at a token endpoint.
#[derive(Clone, Default)]
pub struct TokenClient {
    /// The address of the endpoint.
    pub token_url: String,
    /// The id of the client.
    pub client_id: String,
    /// Its secret. Without one, the client is public.
    pub client_secret: String,
}

/// How tokens for another application are obtained.
#[derive(Clone, Default)]
pub struct CrossAppConfig {
    /// At the identity provider.
    pub provider: TokenClient,
    /// At the authorization server of the other application.
    pub target: TokenClient,
    /// Whether the latter may be reached unencrypted.
    pub is_target_insecure: bool,
    /// The issuer of the latter, which the assertion is for.
    pub audience: String,
    /// The resource that the access token is for, if one is named.
    pub resource: String,
    /// The scopes to request.
    pub scopes: Vec<String>,
}

/// Obtains tokens for another application, and caches each for the ID token of its caller.
pub struct CrossAppAccess {
    steps: Arc<Steps>,
    tokens: Tokens,
}

/// Both steps of the flow.
struct Steps {
    provider: TokenEndpoint,
    target: Arc<TokenEndpoint>,
    /// The id of a client without a secret, for each endpoint.
    public_ids: [String; 2],
    audience: String,
    resource: String,
    scope: String,
}

impl CrossAppAccess {
    /// Obtains tokens as configured.
    pub fn new(config: &CrossAppConfig) -> Result<Self, SetupError> {
        let credentials = |client: &TokenClient| Credentials::new(&client.client_id, &client.client_secret);
        let public_id = |client: &TokenClient| match credentials(client) {
            Some(_) => String::new(),
            None => client.client_id.clone(),
        };
        let CrossAppConfig { provider, target, .. } = config;
        let endpoint = if config.is_target_insecure { TokenEndpoint::new } else { TokenEndpoint::encrypted };
        let steps = Steps {
            provider: TokenEndpoint::encrypted("idpTokenUrl", &provider.token_url, credentials(provider))?,
            target: Arc::new(endpoint("targetTokenUrl", &target.token_url, credentials(target))?),
            public_ids: [public_id(provider), public_id(target)],
            audience: config.audience.clone(),
            resource: config.resource.clone(),
            scope: config.scopes.join(" "),
        };
        Ok(Self { steps: Arc::new(steps), tokens: Tokens::new() })
    }

    /// Forgets the new token for a caller's token, which was rejected. Returns whether another one may be accepted.
    pub fn forget(&self, token: &str, rejected: &str) -> bool {
        self.tokens.forget(token, &rejected.to_owned())
    }

    /// The new token for the ID token of a caller.
    pub async fn exchange(&self, id_token: &str) -> Result<String, ExchangeError> {
        let fetch = || -> Fetch<String, ExchangeError> {
            let (steps, id_token) = (self.steps.clone(), id_token.to_owned());
            async move {
                let assertion = steps.assertion(&id_token).await?;
                let issued = steps.access_token(&assertion).await?;
                let until = issued.until(limits::EXCHANGE_MARGIN);
                Ok((issued.token, until))
            }
            .boxed()
        };
        self.tokens.get(id_token, fetch).await
    }

    /// A token of this client itself at the other application. None if it has no credentials there.
    pub async fn own_token(&self) -> Option<Result<String, ExchangeError>> {
        let fields = [("scope", self.steps.scope.clone()), ("resource", self.steps.resource.clone())];
        own_token(&self.steps.target, &self.tokens, fields).await
    }
}

impl Steps {
    /// The assertion of the identity provider.
    async fn assertion(&self, id_token: &str) -> Result<String, ExchangeError> {
        let fields = [
            ("grant_type", GRANT),
            ("requested_token_type", ID_JAG),
            ("audience", &self.audience),
            ("resource", &self.resource),
            ("scope", &self.scope),
            ("subject_token", id_token),
            ("subject_token_type", ID_TOKEN),
            ("client_id", &self.public_ids[0]),
        ];
        let issued = self.provider.request(TokenType::NotApplicable, &fields).await?;
        self.check(&issued).map_err(|what| self.provider.malformed(what))?;
        Ok(issued.token)
    }

    /// An assertion is passed on only if it is for this application alone: another one could use it in the name of the caller.
    fn check(&self, issued: &Issued) -> Result<(), &'static str> {
        if issued.issued_type.as_deref() != Some(ID_JAG) {
            return Err("its issued_token_type is not that of an ID-JAG");
        }
        let assertion = Jwt::read(&issued.token).ok_or("the ID-JAG is not a JWT")?;
        if sole(assertion.claims.get("aud")) != Some(&self.audience) {
            return Err("the ID-JAG is not for targetAudience alone");
        }
        if !self.resource.is_empty() && sole(assertion.claims.get("resource")) != Some(&self.resource) {
            return Err("the ID-JAG is not for targetResource alone");
        }
        Ok(())
    }

    /// The access token of the other application.
    async fn access_token(&self, assertion: &str) -> Result<Issued, ExchangeError> {
        let fields = [
            ("grant_type", JWT_BEARER),
            ("assertion", assertion),
            ("scope", &self.scope),
            ("client_id", &self.public_ids[1]),
        ];
        Ok(self.target.request(TokenType::Bearer, &fields).await?)
    }
}

/// The only text in a claim that may have several.
fn sole(claim: Option<&Value>) -> Option<&str> {
    match claim? {
        Value::Array(items) => match &items[..] {
            [item] => item.as_str(),
            _ => None,
        },
        item => item.as_str(),
    }
}
