//! A header with a fixed value.

use http::{HeaderName, HeaderValue};
use skep_api::vmcp::BackendAuthStrategy;
use skep_config::FieldError;

use super::{Credentials, block};

pub(super) fn credentials(strategy: &BackendAuthStrategy) -> Result<Credentials, FieldError> {
    let wrong =
        |field: &'static str, message: &str| FieldError::new(field, message).within("headerInjection");
    let injection = block("headerInjection", &strategy.header_injection)?;
    let name = HeaderName::try_from(injection.header_name.as_str())
        .map_err(|_| wrong("headerName", "is not the name of a header"))?;
    let (field, value) = match (&injection.header_value, &injection.header_value_env) {
        (Some(value), None) => ("headerValue", value.clone()),
        (None, Some(variable)) => {
            let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
            let missing =
                || wrong("headerValueEnv", &format!("the environment variable {variable} is not set"));
            ("headerValueEnv", value.ok_or_else(missing)?)
        }
        _ => return Err(wrong("headerValue", "or headerValueEnv must be set, and not both")),
    };
    let mut value = HeaderValue::try_from(value).map_err(|_| wrong(field, "is not the value of a header"))?;
    value.set_sensitive(true);
    Ok(Credentials::Header(name, value))
}
