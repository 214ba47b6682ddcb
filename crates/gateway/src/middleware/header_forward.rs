//! Headers that are added to every request.

use http::{HeaderMap, HeaderName, HeaderValue};
use skep_config::{headers::is_reserved, run_config::HeaderForwardParameters};

use crate::{ConfigError, message::Exchange};

/// The headers.
pub(crate) struct HeaderForward(HeaderMap);

impl HeaderForward {
    pub(super) fn new(parameters: &HeaderForwardParameters) -> Result<Self, ConfigError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &parameters.add_headers {
            let wrong = |what: &str| ConfigError::new(format!("header-forward: {name}: {what}"));
            let known: HeaderName = name.parse().map_err(|_| wrong("this is not the name of a header"))?;
            if is_reserved(name) {
                return Err(wrong("the proxy sets it itself"));
            }
            // Not the value: it may be a secret.
            let mut value: HeaderValue = value.parse().map_err(|_| wrong("its value cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(known, value);
        }
        Ok(Self(headers))
    }

    pub(super) fn add(&self, exchange: &mut Exchange) {
        for (name, value) in &self.0 {
            exchange.headers.insert(name, value.clone());
        }
    }
}
