//! The token endpoint.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

use super::Arrived;
use crate::{
    AuthServer,
    error::OAuthError,
    response,
    rules::{GrantType, Parameters},
};

impl AuthServer {
    pub(super) async fn token(&self, request: &Arrived<'_>) -> Response<Bytes> {
        match self.try_token(request).await {
            Ok(body) => response::token(StatusCode::OK, &body),
            Err(error) => error.response(),
        }
    }

    async fn try_token(&self, request: &Arrived<'_>) -> Result<Value, OAuthError> {
        let form = request.form().ok_or_else(|| OAuthError::request("the body must be a form"))?;
        if let Some(name) = form.duplicate() {
            return Err(OAuthError::request(format!("the parameter {name:?} is there twice")));
        }
        let grant = self.grant_type(&form)?;
        if grant == GrantType::JwtBearer {
            if form.get("client_id").is_some() {
                self.authenticated(request.headers, &form, request.peer).await?;
            }
            return self.exchange_assertion(&form).await;
        }
        let authenticated = self.authenticated(request.headers, &form, request.peer).await?;
        let client = &authenticated.client;
        if !client.may_use(grant) {
            return Err(OAuthError::new("unauthorized_client", "the client may not use this grant type"));
        }
        let (body, undelivered) = match grant {
            GrantType::Code => self.redeem_code(client, &form, request.peer).await?,
            GrantType::Refresh => self.refresh(client, &form, request.peer).await?,
            GrantType::Exchange | GrantType::JwtBearer => return self.exchange(client, &form).await,
        };
        self.use_assertion(&authenticated).await?;
        // The tokens are issued, whether the client lives longer or not.
        if client.dcr_issued {
            self.store.renew_client(&client.id).await.ok();
        }
        self.deliver(undelivered).await;
        Ok(body)
    }

    fn grant_type(&self, form: &Parameters) -> Result<GrantType, OAuthError> {
        let name = form.get("grant_type").ok_or_else(|| OAuthError::request("grant_type is missing"))?;
        match GrantType::named(name) {
            Some(GrantType::JwtBearer) if !self.settings.has_jwt_bearer() => None,
            grant => grant,
        }
        .ok_or_else(|| OAuthError::new("unsupported_grant_type", "the grant type is not supported"))
    }
}
