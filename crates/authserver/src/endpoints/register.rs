//! Dynamic registration of clients (RFC 7591).

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use skep_auth::counted_address;
use uuid::Uuid;

use super::Arrived;
use crate::{
    AuthServer,
    clients::{Metadata, MetadataError},
    events::{EventKind, EventOutcome},
    random::{self, hash, is_same},
    response,
    store::{Client, Method},
};

impl AuthServer {
    pub(super) async fn register(&self, request: &Arrived<'_>) -> Response<Bytes> {
        let tell = |outcome, client: &str| {
            self.tell((EventKind::Registration, outcome), ("", client), Some(request.peer));
        };
        if let Some(response) = self.registration_refusal(request) {
            tell(EventOutcome::Denied, "");
            return response;
        }
        let metadata = match parsed(request) {
            Ok(metadata) => metadata,
            Err(error) => {
                tell(EventOutcome::Failure, "");
                return refused(&error);
            }
        };
        let (client, secret) = match self.new_client(&metadata) {
            Ok(new) => new,
            Err(error) => {
                tell(EventOutcome::Failure, "");
                return refused(&error);
            }
        };
        match self.store.put_client(&client, counted_address(request.peer)).await {
            Ok(()) => {
                tell(EventOutcome::Success, &client.id);
                response::registration(StatusCode::CREATED, &self.registered(&client, secret.as_deref()))
            }
            Err(error) => {
                tell(EventOutcome::Failure, "");
                let body =
                    json!({"error": "temporarily_unavailable", "error_description": error.to_string()});
                let mut response = response::registration(StatusCode::SERVICE_UNAVAILABLE, &body);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
                response
            }
        }
    }

    /// The response to a client that may not register, if it may not (RFC 7591, section 3).
    fn registration_refusal(&self, request: &Arrived<'_>) -> Option<Response<Bytes>> {
        let settings = &self.settings.registration;
        if !settings.is_open {
            let text = "clients cannot register themselves here: ask the administrator";
            let body = json!({"error": "access_denied", "error_description": text});
            return Some(response::registration(StatusCode::FORBIDDEN, &body));
        }
        let wanted = settings.token_hash.as_ref()?;
        if request.bearer().is_some_and(|token| is_same(&hash(token), wanted)) {
            return None;
        }
        let text = "an initial access token is needed to register: ask the administrator";
        let body = json!({"error": "invalid_token", "error_description": text});
        let mut response = response::registration(StatusCode::UNAUTHORIZED, &body);
        let challenge = HeaderValue::from_static(r#"Bearer realm="registration""#);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        Some(response)
    }

    fn new_client(&self, metadata: &Metadata) -> Result<(Client, Option<String>), MetadataError> {
        metadata.check_redirect_uris()?;
        metadata.check_redirect_hosts(&self.settings)?;
        metadata.check_names()?;
        metadata.check_response_types()?;
        let grants = metadata.grants()?;
        let (method, any_secret_method) = metadata.method(&self.settings)?;
        let scopes = metadata.scopes(&self.settings)?;
        let secret = match method {
            Method::None => None,
            _ => Some(random::text().map_err(|error| MetadataError::Metadata(error.to_string()))?),
        };
        let client = Client {
            id: Uuid::new_v4().to_string(),
            name: metadata.client_name.clone().unwrap_or_default(),
            redirect_uris: metadata.redirect_uris.clone(),
            grant_types: grants,
            response_types: vec!["code".into()],
            scopes,
            audience: self.settings.audiences.clone(),
            public: method == Method::None,
            dcr_issued: true,
            token_endpoint_auth_method: method,
            secret_hash: secret.as_ref().map(random::hash).unwrap_or_default(),
            any_secret_method,
            keys: None,
        };
        Ok((client, secret))
    }

    /// What was registered (RFC 7591, section 3.2.1).
    fn registered(&self, client: &Client, secret: Option<&str>) -> Value {
        let mut body = json!({
            "client_id": client.id,
            "client_id_issued_at": self.clock.now(),
            "redirect_uris": client.redirect_uris,
            "token_endpoint_auth_method": client.token_endpoint_auth_method,
            "grant_types": client.grant_types,
            "response_types": client.response_types,
            "scope": client.scopes.join(" "),
        });
        if !client.name.is_empty() {
            body["client_name"] = client.name.as_str().into();
        }
        if let Some(secret) = secret {
            body["client_secret"] = secret.into();
            body["client_secret_expires_at"] = 0.into();
        }
        body
    }
}

fn parsed(request: &Arrived<'_>) -> Result<Metadata, MetadataError> {
    if !request.is_type("application/json") {
        return Err(MetadataError::Metadata("the Content-Type must be application/json".into()));
    }
    let invalid =
        || MetadataError::Metadata("the body is not a JSON object, or a member has the wrong type".into());
    // A list would be taken for the members in their order.
    if request.body.trim_ascii_start().first() != Some(&b'{') {
        return Err(invalid());
    }
    serde_json::from_slice(&request.body).map_err(|_| invalid())
}

fn refused(error: &MetadataError) -> Response<Bytes> {
    let (code, description) = match error {
        MetadataError::RedirectUri(description) => ("invalid_redirect_uri", description),
        MetadataError::Metadata(description) => ("invalid_client_metadata", description),
    };
    response::registration(StatusCode::BAD_REQUEST, &json!({"error": code, "error_description": description}))
}
