//! Headers that a proxy adds to every request to a remote server.

use std::collections::{BTreeMap, HashSet};

use http::{HeaderName, HeaderValue};
use skep_api::workload::HeaderForward;
use skep_config::{FieldError, FieldPath, env, headers::is_reserved, run_config};

use crate::build::EnvList;

/// Every mistake in the headers by themselves. The proxy would not start with one.
pub(crate) fn check(headers: &HeaderForward) -> Vec<FieldError> {
    let plain = headers.add_plaintext_headers.iter().map(|(name, value)| {
        let field = FieldPath::from("headerForward.addPlaintextHeaders").key(name);
        (field, name, Some(value))
    });
    let secret = headers.add_headers_from_secret.iter().enumerate().map(|(index, header)| {
        let list = FieldPath::from("headerForward.addHeadersFromSecret");
        (list.index(index).join("headerName"), &header.header_name, None)
    });
    let mut seen = HashSet::new();
    let mut errors = Vec::new();
    for (field, name, value) in plain.chain(secret) {
        let parsed = match header_name(name) {
            Ok(parsed) => parsed,
            Err(message) => {
                errors.push(FieldError::new(field, message));
                continue;
            }
        };
        if is_reserved(name) {
            errors.push(FieldError::new(field.clone(), format!("the proxy itself sets {name}: remove it")));
        }
        if value.is_some_and(|value| HeaderValue::from_str(value).is_err()) {
            let message = format!("the value of {name} is not valid in HTTP: write it on one line");
            errors.push(FieldError::new(field.clone(), message));
        }
        if !seen.insert(parsed) {
            errors.push(FieldError::new(field, format!("duplicate of {name}: remove one of them")));
        }
    }
    errors
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    name.parse().map_err(|_| format!("{name:?} is not the name of a header: use letters, digits and dashes"))
}

/// The headers for the RunConfig of the object with this name.
pub(crate) fn header_forward(headers: &HeaderForward, owner: &str) -> Option<run_config::HeaderForward> {
    let secrets = headers.add_headers_from_secret.iter();
    let secrets: BTreeMap<_, _> = secrets
        .map(|header| (header.header_name.clone(), env::header_secret(&header.header_name, owner)))
        .collect();
    let all = run_config::HeaderForward {
        add_plaintext_headers: headers.add_plaintext_headers.clone(),
        add_headers_from_secret: secrets,
    };
    (all != run_config::HeaderForward::default()).then_some(all)
}

/// Adds the secret values.
pub(crate) fn add_env(headers: &HeaderForward, owner: &str, list: &mut EnvList) {
    if !headers.add_headers_from_secret.is_empty() {
        list.set(env::SECRETS_PROVIDER, env::SECRETS_FROM_ENVIRONMENT);
    }
    for header in &headers.add_headers_from_secret {
        let name = env::secret(&env::header_secret(&header.header_name, owner));
        list.set_from_secret(name, &header.value_secret_ref);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config_refs::samples::{fields, sample};

    fn headers(plain: Value, secret: &[&str]) -> HeaderForward {
        let reference = json!({"name": "s", "key": "k"});
        let secret: Vec<Value> =
            secret.iter().map(|name| json!({"headerName": name, "valueSecretRef": reference})).collect();
        sample(json!({"addPlaintextHeaders": plain, "addHeadersFromSecret": secret}))
    }

    #[test]
    fn each_header_is_unique_and_one_that_a_proxy_may_add() {
        assert_eq!(check(&headers(json!({"X-Tenant": "a b"}), &["Authorization"])), []);
        let (plain_field, secret_field) = ("addPlaintextHeaders", "addHeadersFromSecret[0].headerName");
        for (plain, secret, field, message) in [
            (json!({"X Tenant": "a"}), None, "[X Tenant]", "\"X Tenant\" is not the name of a header"),
            (json!({"X-Tenant": "a\nb"}), None, "[X-Tenant]", "the value of X-Tenant is not valid"),
            (json!({"Host": "a"}), None, "[Host]", "the proxy itself sets Host"),
            (json!({}), Some("X-Forwarded-For"), "", "the proxy itself sets X-Forwarded-For"),
            (json!({"X-Tenant": "a"}), Some("x-tenant"), "", "duplicate of x-tenant"),
        ] {
            let errors = check(&headers(plain, secret.as_slice()));
            let parent = if field.is_empty() { secret_field } else { plain_field };
            assert_eq!(fields(&errors), [format!("headerForward.{parent}{field}")]);
            assert!(errors[0].message.starts_with(message), "{errors:?}");
        }
    }

    #[test]
    fn every_mistake_is_reported() {
        let errors = check(&headers(json!({"Host": "a\nb", "X Tenant": "a"}), &["TE", "x-key", "X-Key"]));
        let expected = [
            "headerForward.addPlaintextHeaders[Host]",
            "headerForward.addPlaintextHeaders[Host]",
            "headerForward.addPlaintextHeaders[X Tenant]",
            "headerForward.addHeadersFromSecret[0].headerName",
            "headerForward.addHeadersFromSecret[2].headerName",
        ];
        assert_eq!(fields(&errors), expected);
    }

    #[test]
    fn the_run_config_has_the_variable_of_a_secret_header() {
        let config = header_forward(&headers(json!({"X-Tenant": "a"}), &["X-Key"]), "remote").unwrap();
        assert_eq!(config.add_headers_from_secret["X-Key"], "HEADER_FORWARD_X_KEY_REMOTE");
        assert_eq!(header_forward(&headers(json!({}), &[]), "remote"), None);
    }
}
