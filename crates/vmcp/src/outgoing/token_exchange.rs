//! The caller's token, exchanged for one that the backend accepts (RFC 8693).

use skep_api::vmcp::BackendAuthStrategy;
use skep_auth::Exchanger;
use skep_config::{FieldError, run_config};

use super::Credentials;

pub(super) fn credentials(strategy: &BackendAuthStrategy) -> Result<Credentials, FieldError> {
    let wrong = |field: &'static str, message: &str| FieldError::new(field, message).within("tokenExchange");
    let exchange = strategy
        .token_exchange
        .as_ref()
        .ok_or_else(|| FieldError::new("tokenExchange", "is required for this type"))?;
    if exchange.subject_provider_name.as_ref().is_some_and(|name| !name.is_empty()) {
        return Err(wrong(
            "subjectProviderName",
            "needs an authorization server, which this version does not support",
        ));
    }
    let secret = match (&exchange.client_secret, &exchange.client_secret_env) {
        (_, Some(variable)) => std::env::var(variable).map_err(|_| {
            wrong("clientSecretEnv", &format!("the environment variable {variable} is not set"))
        })?,
        (secret, None) => secret.clone().unwrap_or_default(),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let config = run_config::TokenExchange {
        token_url: exchange.token_url.clone(),
        client_id: text(&exchange.client_id),
        audience: text(&exchange.audience),
        scopes: exchange.scopes.clone(),
        subject_token_type: text(&exchange.subject_token_type),
        ..run_config::TokenExchange::default()
    };
    let exchanger =
        Exchanger::new(&config, &secret).map_err(|error| wrong("tokenUrl", &error.to_string()))?;
    Ok(Credentials::TokenExchange(Box::new(exchanger)))
}
