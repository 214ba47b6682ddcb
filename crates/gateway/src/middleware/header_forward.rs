//! Headers that are added to every request.

use http::{HeaderMap, HeaderName, HeaderValue};
use skep_config::{headers::is_reserved, run_config::HeaderForwardParameters};

use crate::{ConfigError, headers::set_alone, message::Exchange};

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
            set_alone(&mut exchange.headers, name, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::headers::set_alone;
    use http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn an_injected_header_stands_alone_however_a_server_spells_it() {
        let mut headers = HeaderMap::new();
        for name in ["x-api-key", "x_api_key", "x-api_key", "x_other"] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("forged"));
        }
        for name in ["x-api-key", "x_api_key"] {
            let name = HeaderName::from_static(name);
            set_alone(&mut headers, &name, HeaderValue::from_static("secret"));
            let mut left: Vec<_> = headers.iter().filter(|(name, _)| *name != "x_other").collect();
            left.retain(|(_, value)| *value == "forged");
            assert!(left.is_empty(), "{left:?}");
        }
        assert_eq!(headers["x_other"], "forged");
    }
}
