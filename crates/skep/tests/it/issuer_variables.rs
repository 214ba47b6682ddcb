//! The variables that change how the issuer of tokens is reached.

use std::{fs, process::Command};

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

/// The error with which a proxy ends at its start.
fn error(name: &str, oidc: Value, variables: &[(&str, &str)]) -> String {
    let folder = std::env::temp_dir().join(format!("skep-issuer-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut config = config(oidc);
    let own = json!({"schema_version": "v0.1.0", "name": "fetch", "transport": "streamable-http", "host": "127.0.0.1", "port": free_port()});
    config.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    fs::write(folder.join("runconfig.json"), config.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    let command = command.args(["proxy", "run", "image"]).current_dir(&folder).env_clear();
    let ended = command.envs(variables.iter().copied()).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let log = String::from_utf8(ended.stderr).unwrap();
    log.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_else(|| panic!("{log}")).to_owned()
}

#[test]
fn an_issuer_over_plain_http_is_an_error_unless_the_variable_allows_it() {
    let oidc = json!({"Issuer": "http://login.example", "Audience": "crm"});
    let refused = error("plain", oidc.clone(), &[]);
    assert!(
        refused.starts_with("auth: oidc_config: ") && refused.contains("http://login.example"),
        "{refused}"
    );
    let other = error("other", oidc.clone(), &[(PLAIN.0, "false")]);
    assert_eq!(other, refused);
    Proxy::with("plain-issuer", config(oidc), &[PLAIN]);
}

#[test]
fn without_discovery_the_address_of_the_keys_is_required() {
    let oidc = json!({"Issuer": "https://login.example", "Audience": "crm"});
    assert_eq!(
        error("discovery", oidc.clone(), &[NO_DISCOVERY]),
        "auth: oidc_config: JWKSURL is missing, and TOOLHIVE_SKIP_OIDC_DISCOVERY is set"
    );
    let mut with_keys = oidc;
    with_keys["JWKSURL"] = json!("https://login.example/keys");
    Proxy::with("no-discovery", config(with_keys), &[NO_DISCOVERY]);
}
