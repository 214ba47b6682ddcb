//! How the virtual server authenticates to its backends.

mod aws_sts;
mod exchange;
mod fixed_header;
mod provider;
mod subject;
mod upstream_token;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use skep_api::vmcp::BackendAuthStrategy;
use skep_config::FieldError;
use skep_gateway::AuthorizationServer;

use crate::backend::{BackendError, Caller};
#[cfg(test)]
pub(crate) use aws_sts::signed_at;
use aws_sts::{AwsSts, Signing};
use exchange::Exchange;
use upstream_token::UpstreamToken;

/// The credentials for a backend.
pub(crate) enum Credentials {
    /// None are needed.
    Unauthenticated,
    /// A header with a fixed value.
    Header(HeaderName, HeaderValue),
    /// A token of the caller, exchanged for one that the backend accepts.
    Exchange(Box<Exchange>),
    /// The caller's token of an identity provider.
    UpstreamToken(UpstreamToken),
    /// A signature with credentials of AWS.
    AwsSts(Box<AwsSts>),
}

/// What authenticates one request.
pub(crate) enum Authentication {
    Nothing,
    Header(HeaderName, HeaderValue),
    Signature(Signing),
}

/// An authorization server in this process, if there is one, and the backend that credentials are for.
#[derive(Clone, Copy)]
pub(crate) struct Server<'a> {
    pub(crate) embedded: Option<&'a Arc<dyn AuthorizationServer>>,
    pub(crate) backend: &'a str,
}

impl Credentials {
    /// The credentials of this strategy.
    pub(crate) fn new(
        strategy: Option<&BackendAuthStrategy>,
        server: Server<'_>,
    ) -> Result<Self, Vec<FieldError>> {
        let Some(strategy) = strategy else { return Ok(Self::Unauthenticated) };
        let credentials = match &*strategy.type_ {
            BackendAuthStrategy::UNAUTHENTICATED => Ok(Self::Unauthenticated),
            "header_injection" => fixed_header::credentials(strategy),
            "upstream_inject" => UpstreamToken::new(strategy, server).map(Self::UpstreamToken),
            "aws_sts" => AwsSts::new(strategy, server).map(Box::new).map(Self::AwsSts),
            _ => Exchange::new(strategy, server).map(Box::new).map(Self::Exchange),
        };
        credentials.map_err(|error| vec![error])
    }

    /// The name of the strategy, for status pages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Unauthenticated => BackendAuthStrategy::UNAUTHENTICATED,
            Self::Header(..) => "header_injection",
            Self::Exchange(exchange) => exchange.kind(),
            Self::UpstreamToken(_) => "upstream_inject",
            Self::AwsSts(_) => "aws_sts",
        }
    }

    /// Whether what a backend offers may depend on the caller.
    pub(crate) fn depend_on_caller(&self) -> bool {
        !matches!(self, Self::Unauthenticated | Self::Header(..))
    }

    /// Forgets what a backend has rejected. Returns whether another credential may be accepted.
    pub(crate) async fn forget(&self, caller: &Caller, rejected: &Authentication) -> bool {
        let (Self::Exchange(exchange), Authentication::Header(_, value)) = (self, rejected) else {
            return false;
        };
        let token = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
        match token {
            Some(token) => exchange.forget(caller, token).await,
            None => false,
        }
    }

    /// What authenticates a request for this caller.
    pub(crate) async fn of(&self, caller: &Caller) -> Result<Authentication, BackendError> {
        let token = match self {
            Self::Unauthenticated => None,
            Self::Header(name, value) => return Ok(Authentication::Header(name.clone(), value.clone())),
            Self::Exchange(exchange) => exchange.token(caller).await?,
            Self::UpstreamToken(upstream) => upstream.of(caller).await?,
            Self::AwsSts(aws) => {
                let signing = aws.signing(caller).await?;
                return Ok(signing.map_or(Authentication::Nothing, Authentication::Signature));
            }
        };
        let bearer = token.map(|token| bearer(&token)).transpose()?;
        let header = |value| Authentication::Header(header::AUTHORIZATION, value);
        Ok(bearer.map_or(Authentication::Nothing, header))
    }
}

impl Authentication {
    /// Adds it to the headers of a request, which has this body and is complete but for them.
    pub(crate) fn apply(
        &self,
        requested: (&Method, &Uri),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), BackendError> {
        match self {
            Self::Nothing => {}
            Self::Header(name, value) => {
                headers.insert(name, value.clone());
            }
            Self::Signature(signing) => signing.sign(requested, headers, body)?,
        }
        Ok(())
    }
}

fn bearer(token: &str) -> Result<HeaderValue, BackendError> {
    let unusable = |_| BackendError::NoCredentials("the new token is not a valid header".into());
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The block of a strategy.
fn block<'a, T>(name: &'static str, block: &'a Option<T>) -> Result<&'a T, FieldError> {
    block.as_ref().ok_or_else(|| FieldError::new(name, "is required for this type"))
}

/// A secret, in the configuration itself or in the environment variable that a field of it names.
fn secret(
    field: &'static str,
    value: &Option<String>,
    variable: &Option<String>,
) -> Result<String, FieldError> {
    let Some(variable) = variable else { return Ok(value.clone().unwrap_or_default()) };
    let missing = || FieldError::new(field, format!("the environment variable {variable} is not set"));
    std::env::var(variable).map_err(|_| missing())
}

/// A text, which may be left out.
fn text(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}
