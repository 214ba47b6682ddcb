//! Headers that a proxy adds to every request to a server elsewhere.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue, header};
use skep_api::workload::HeaderForward;
use skep_config::{env, run_config};

use crate::build::EnvList;

/// Headers that belong to the connection, or say where a request came from. A proxy sets these itself.
const RESERVED: [HeaderName; 12] = [
    header::HOST,
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    HeaderName::from_static("http2-settings"),
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
];
const RESERVED_PREFIXES: [&str; 3] = ["forwarded", "x-forwarded-", "x-real-ip"];

/// What is wrong with the headers by themselves. The proxy would not start with these.
pub(crate) fn check(headers: &HeaderForward) -> Result<(), String> {
    let mut seen = Vec::new();
    let plain = headers.add_plaintext_headers.iter().map(|(name, value)| (name, Some(value)));
    let secret = headers.add_headers_from_secret.iter().map(|header| (&header.header_name, None));
    for (name, value) in plain.chain(secret) {
        let known = name.parse::<HeaderName>().map_err(|_| {
            format!("headerForward: {name:?} is not the name of a header: use letters, digits and dashes")
        })?;
        let reserved = RESERVED_PREFIXES.iter().any(|prefix| known.as_str().starts_with(prefix));
        if reserved || RESERVED.contains(&known) {
            return Err(format!("headerForward: {name} is set by the proxy itself: remove it"));
        }
        if value.is_some_and(|value| HeaderValue::from_str(value).is_err()) {
            return Err(format!("headerForward: the value of {name} cannot be sent: write it on one line"));
        }
        if seen.contains(&known) {
            return Err(format!("headerForward: {name} is given twice: keep one of them"));
        }
        seen.push(known);
    }
    Ok(())
}

/// What is wrong with the headers of clients that are to be passed on: some belong to one connection, and some are for
/// the server alone.
pub(crate) fn check_passthrough(names: &[String]) -> Result<(), String> {
    for name in names {
        let known = name
            .parse::<HeaderName>()
            .map_err(|_| format!("passthroughHeaders: {name:?} is not the name of a header"))?;
        let reserved = RESERVED_PREFIXES.iter().any(|prefix| known.as_str().starts_with(prefix));
        let ours = [header::AUTHORIZATION, header::COOKIE].contains(&known);
        if reserved || ours || RESERVED.contains(&known) {
            return Err(format!("passthroughHeaders: {name} is never passed on: remove it"));
        }
    }
    Ok(())
}

/// The headers as the RunConfig names them, for an object of that name.
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
    use crate::parts::samples::sample;

    fn headers(plain: Value, secret: &[&str]) -> HeaderForward {
        let reference = json!({"name": "s", "key": "k"});
        let secret: Vec<Value> =
            secret.iter().map(|name| json!({"headerName": name, "valueSecretRef": reference})).collect();
        sample(json!({"addPlaintextHeaders": plain, "addHeadersFromSecret": secret}))
    }

    #[test]
    fn each_header_is_one_that_a_proxy_may_add_and_stands_once() {
        assert_eq!(check(&headers(json!({"X-Tenant": "a b"}), &["Authorization"])), Ok(()));
        for (plain, secret, error) in [
            (json!({"X Tenant": "a"}), None, "\"X Tenant\" is not the name of a header"),
            (json!({"X-Tenant": "a\nb"}), None, "the value of X-Tenant cannot be sent"),
            (json!({"Host": "a"}), None, "Host is set by the proxy itself"),
            (json!({}), Some("X-Forwarded-For"), "X-Forwarded-For is set by the proxy itself"),
            (json!({"X-Tenant": "a"}), Some("x-tenant"), "x-tenant is given twice"),
        ] {
            let message = check(&headers(plain, secret.as_slice())).unwrap_err();
            assert!(message.starts_with(&format!("headerForward: {error}")), "{message}");
        }
    }

    #[test]
    fn what_belongs_to_the_connection_or_the_caller_is_not_passed_on() {
        let check = |name: &str| check_passthrough(&[name.to_owned()]);
        assert_eq!(check("X-Tenant"), Ok(()));
        for name in ["Host", "x-forwarded-for", "Authorization", "cookie", "a b", ""] {
            assert!(check(name).unwrap_err().starts_with("passthroughHeaders: "), "{name}");
        }
    }

    #[test]
    fn secret_values_are_named_and_not_written() {
        let config = header_forward(&headers(json!({"X-Tenant": "a"}), &["X-Key"]), "remote").unwrap();
        assert_eq!(config.add_headers_from_secret["X-Key"], "HEADER_FORWARD_X_KEY_REMOTE");
        assert_eq!(header_forward(&headers(json!({}), &[]), "remote"), None);
    }
}
