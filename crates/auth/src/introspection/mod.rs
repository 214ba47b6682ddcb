//! Introspection of opaque tokens (RFC 7662).

mod form;

use std::{sync::Arc, time::Instant};

use tracing::warn;

use crate::{
    AuthenticationError, Identity, SetupError,
    cache::Cache,
    claims::{Claims, Expected, rest},
    fetch::{FetchError, Fetcher},
    limits,
};
use form::Form;

const NOT_ACTIVE: AuthenticationError =
    AuthenticationError::Token("the issuer does not know the token, or it has expired");

/// Introspects tokens at their issuer.
///
/// A response is cached for [`limits::ANSWER_LIFE`], and no longer than the token lasts: a token that its issuer
/// revokes is accepted for that long.
pub(crate) struct Introspection {
    fetcher: Fetcher,
    form: Form,
    answers: Cache<Arc<Identity>>,
}

impl Introspection {
    pub(crate) fn new(
        fetcher: Fetcher,
        url: &str,
        (client, secret): (&str, &str),
        audience: &str,
    ) -> Result<Self, SetupError> {
        let form = Form::new(url, fetcher.address("IntrospectionURL", url)?, client, secret);
        if matches!(form, Form::Google(_)) && audience.is_empty() {
            let message = "Audience: Google reports the audience of a token and does not check it: set it to your client ID";
            return Err(SetupError::new(message));
        }
        Ok(Self { fetcher, form, answers: Cache::new() })
    }

    /// The identity of the token's subject.
    pub(crate) async fn identity(
        &self,
        token: &str,
        expected: &Expected,
    ) -> Result<Arc<Identity>, AuthenticationError> {
        if let Some(identity) = self.answers.get(token, Instant::now()) {
            return Ok(identity);
        }
        let sent = Instant::now();
        let claims = match self.introspect(token).await {
            Ok(Some(claims)) => claims,
            Ok(None) => return Err(NOT_ACTIVE),
            Err(error) => {
                warn!(%error, "token introspection failed");
                return Err(AuthenticationError::Unavailable);
            }
        };
        expected.check(&claims)?;
        let until = sent + rest(&claims).min(limits::ANSWER_LIFE);
        let identity = Arc::new(Identity::of(self.form.kept(claims)));
        self.answers.put(token, identity.clone(), until, Instant::now());
        Ok(identity)
    }

    async fn introspect(&self, token: &str) -> Result<Option<Claims>, FetchError> {
        let request = self.form.request(token);
        let uri = request.uri().clone();
        let (status, answer) = self.fetcher.send(request, limits::INTROSPECTION, limits::FETCH_TIME).await?;
        self.form.claims(&uri, status, answer)
    }
}
