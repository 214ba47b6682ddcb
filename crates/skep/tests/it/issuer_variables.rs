//! The variables that change how the issuer of tokens is reached.

use serde_json::{Value, json};
use skep_testkit::free_port;

use crate::proxy::Proxy;

const PLAIN: (&str, &str) = ("INSECURE_DISABLE_URL_VALIDATION", "true");
const NO_DISCOVERY: (&str, &str) = ("TOOLHIVE_SKIP_OIDC_DISCOVERY", "true");

/// A remote server, and tokens of this issuer.
fn config(oidc: Value) -> Value {
    json!({
        "remote_url": format!("http://127.0.0.1:{}/mcp", free_port()),
        "middleware_configs": [{"type": "auth", "parameters": {"oidc_config": oidc}}],
    })
}

#[test]
fn an_issuer_over_plain_http_is_an_error_unless_the_variable_allows_it() {
    let oidc = json!({"Issuer": "http://login.example", "Audience": "crm"});
    let refused = Proxy::refused("plain", config(oidc.clone()), &[]);
    assert!(
        refused.starts_with("auth: oidc_config: ") && refused.contains("http://login.example"),
        "{refused}"
    );
    let other = Proxy::refused("other", config(oidc.clone()), &[(PLAIN.0, "false")]);
    assert_eq!(other, refused);
    Proxy::with("plain-issuer", config(oidc), &[PLAIN]);
}

#[test]
fn without_discovery_the_address_of_the_keys_is_required() {
    let oidc = json!({"Issuer": "https://login.example", "Audience": "crm"});
    assert_eq!(
        Proxy::refused("discovery", config(oidc.clone()), &[NO_DISCOVERY]),
        "auth: oidc_config: JWKSURL is missing, and TOOLHIVE_SKIP_OIDC_DISCOVERY is set"
    );
    let mut with_keys = oidc;
    with_keys["JWKSURL"] = json!("https://login.example/keys");
    Proxy::with("no-discovery", config(with_keys), &[NO_DISCOVERY]);
}
