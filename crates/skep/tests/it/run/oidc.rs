//! Callers are authenticated by their tokens, with the same inputs as in a pod: a mounted certificate, a secret in a
//! variable.

use std::fs;

use serde_json::json;
use skep_testkit::IdentityProvider;

use super::{Client, DEMO, Run, server};

#[tokio::test(flavor = "multi_thread")]
async fn callers_need_a_token_and_certificates_and_secrets_come_from_the_file() {
    let provider = IdentityProvider::start_with_tls().await;
    let issuer = &provider.issuer;
    let certificate = fs::read_to_string(provider.authority.as_ref().unwrap()).unwrap();
    let certificate = certificate.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let oidc = format!(
        "  oidcConfigRef: {{name: corp, audience: crm}}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPOIDCConfig
metadata: {{name: corp}}
spec:
  type: inline
  inline:
    issuer: {issuer}
    introspectionUrl: {issuer}/introspect
    clientId: me
    clientSecretRef: {{name: idp, key: secret}}
    jwksAllowPrivateIP: true
    caBundleRef: {{configMapRef: {{name: corp-ca, key: ca.crt}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: corp-ca}}
data:
  ca.crt: |
{certificate}---
apiVersion: v1
kind: Secret
metadata: {{name: idp}}
stringData: {{secret: hunter2}}"
    );
    let run = Run::start(&server("demo", DEMO, &oidc));
    assert!(run.row("demo").ends_with("Ready    -"), "{}", run.output());
    let address = run.address("demo");
    let stranger = Client { address, session: String::new(), token: String::new() };
    let (head, _) = stranger.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    assert!(
        head.contains(&format!("http://{address}/.well-known/")),
        "the response names the metadata: {head}"
    );

    let known = Client::with_token(address, &provider.token(json!({})));
    assert_eq!(known.tools(), ["echo", "add", "time"]);
    provider.issue("opaque", provider.claims(json!({})));
    let known = Client::with_token(address, "opaque");
    assert_eq!(known.tools(), ["echo", "add", "time"]);
    let requests = provider.requests("/introspect");
    let basic = requests[0].headers["authorization"].to_str().unwrap();
    // me:hunter2
    assert_eq!(basic, "Basic bWU6aHVudGVyMg==");
    assert!(!run.output().contains("hunter2"));
}
