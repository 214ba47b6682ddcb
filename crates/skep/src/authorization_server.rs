//! The authorization server of a virtual server, which is configured by a file beside that of the virtual server.

use std::{fs, net::IpAddr, path::Path, sync::Arc};

use anyhow::Context;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use http::{Request, Response};
use hyper::body::Incoming;
use serde_json::{Map, Value};
use skep_auth::{AuthenticationError, OwnTokens};
use skep_authserver::{AuthServer, UpstreamTokenError};
use skep_config::{FieldError, field::joined, paths::VMCP_AUTH_SERVER_FILE as FILE};
use skep_vmcp::{AuthorizationServer, ProviderTokenError};

/// An authorization server, as a virtual server sees it.
pub(crate) struct Embedded(AuthServer);

impl Embedded {
    /// The authorization server that is configured beside this file, if there is one.
    pub(crate) fn beside(config: &Path) -> anyhow::Result<Option<Arc<Self>>> {
        let file = config.with_file_name(FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        let wrong =
            |errors: Vec<FieldError>| anyhow::anyhow!("invalid {}: {}", file.display(), joined(&errors));
        let config = skep_config::AuthServer::parse(&text).map_err(wrong)?;
        AuthServer::new(&config).map(|server| Some(Arc::new(Self(server)))).map_err(wrong)
    }

    /// Checks that its store and its upstreams can be used.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        self.0.check().await.map_err(|error| anyhow::anyhow!("{FILE}: {error}"))
    }
}

impl OwnTokens for Embedded {
    fn issuer(&self) -> &str {
        self.0.issuer()
    }

    fn claims<'a>(
        &'a self,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Map<String, Value>, AuthenticationError>> {
        async move {
            match self.0.claims(token).await {
                Ok(Some(claims)) => Ok(claims),
                Ok(None) => {
                    Err(AuthenticationError::Token("the token is not valid, or its session has ended"))
                }
                Err(_) => Err(AuthenticationError::Unavailable),
            }
        }
        .boxed()
    }
}

impl AuthorizationServer for Embedded {
    fn serves(&self, path: &str) -> bool {
        self.0.serves(path)
    }

    fn respond(&self, request: Request<Incoming>, peer: IpAddr) -> BoxFuture<'_, Response<Bytes>> {
        self.0.respond(request, peer).boxed()
    }

    fn audiences(&self) -> &[String] {
        self.0.audiences()
    }

    fn providers(&self) -> Vec<&str> {
        self.0.upstream_tokens().providers().collect()
    }

    fn injects_tokens(&self) -> bool {
        !self.0.is_injection_disabled()
    }

    fn provider_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        let token = self.0.upstream_tokens().access_token(session, provider);
        token.map(|token| token.map_err(provider_error)).boxed()
    }

    fn provider_claims<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<Option<Map<String, Value>>, ProviderTokenError>> {
        let claims = self.0.upstream_tokens().claims(session, provider);
        claims.map(|claims| claims.map_err(provider_error)).boxed()
    }
}

fn provider_error(error: UpstreamTokenError) -> ProviderTokenError {
    match error {
        UpstreamTokenError::NotConnected => ProviderTokenError::NotConnected,
        UpstreamTokenError::Expired => ProviderTokenError::Expired,
        UpstreamTokenError::Unavailable => ProviderTokenError::Unavailable,
    }
}
