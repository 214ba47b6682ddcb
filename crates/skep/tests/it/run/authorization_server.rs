//! Servers whose users log in at an identity provider: what a manifest for a cluster has works on loopback, too.

use std::{fs, net::SocketAddr};

use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, free_port, repository};

use super::{Client, DEMO, Manifests, Run, identity_provider::Provider, life::own_address, server, until};
use crate::{
    authorization_server,
    login::{Browser, ann_logs_in, fake_provider, tokens},
};

/// An authorization server at this host of a cluster.
fn issuer(host: &str, provider: &IdentityProvider) -> String {
    let at = &provider.issuer;
    format!(
        "{{issuer: \"https://{host}\", hmacSecretRefs: [{{name: login, key: hmac}}], \
         signingKeySecretRefs: [{{name: login, key: signing}}], upstreamProviders: [{{name: corp, type: oauth2, \
         oauth2Config: {{authorizationEndpoint: \"{at}/authorize\", tokenEndpoint: \"{at}/token\", \
         userInfo: {{endpointUrl: \"{at}/me\"}}, clientId: us, clientSecretRef: {{name: login, key: secret}}}}}}]}}"
    )
}

pub(super) fn object(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: toolhive.stacklok.dev/v1beta1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n{spec}\n"
    )
}

/// The objects that an authorization server at this host needs.
fn login_objects(host: &str, provider: &IdentityProvider) -> String {
    let tokens = format!("  type: inline\n  inline: {{issuer: \"https://{host}\"}}");
    let auth = format!("  type: embeddedAuthServer\n  embeddedAuthServer: {}", issuer(host, provider));
    object("MCPOIDCConfig", host, &tokens) + &object("MCPExternalAuthConfig", host, &auth)
}

/// How a workload refers to these.
fn references(host: &str, reference: &str) -> String {
    let kind = if reference == "authServerRef" { "kind: MCPExternalAuthConfig, " } else { "" };
    format!("  {reference}: {{{kind}name: {host}}}\n  oidcConfigRef: {}\n", oidc_ref(host))
}

pub(super) fn oidc_ref(host: &str) -> String {
    format!("{{name: {host}, audience: \"https://{host}/x\", resourceUrl: \"https://{host}/x\"}}")
}

fn secrets() -> String {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let key: String = key.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData:\n  secret: s3cret\n  \
         hmac: {}\n  signing: |\n{key}",
        "h".repeat(40)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_every_kind_of_server_log_in_on_this_machine() {
    let provider = fake_provider().await;
    provider.answer("/me", json!({"sub": "ann", "name": "Ann"}));
    let (remote, heads) = authorization_server::server(own_address());
    let proxy = format!(
        "  remoteUrl: http://{remote}/mcp\n  allowPrivateEndpoint: true\n{}",
        references("b.example", "externalAuthConfigRef")
    );
    let all = format!(
        "  groupRef: {{name: all}}\n  incomingAuth: {{type: oidc, oidcConfigRef: {}}}\n  authServerConfig: {}",
        oidc_ref("c.example"),
        issuer("c.example", &provider)
    );
    let text = [
        server("demo", DEMO, &references("a.example", "authServerRef")),
        object("MCPRemoteProxy", "remote", &proxy),
        server("open", DEMO, "  groupRef: {name: all}"),
        object("MCPGroup", "all", "  description: all"),
        object("VirtualMCPServer", "joined", &all),
        login_objects("a.example", &provider),
        login_objects("b.example", &provider),
        login_objects("c.example", &provider),
        secrets(),
    ];
    let run = Run::start(&text.concat());
    let log_in = |address: SocketAddr| {
        let tokens =
            tokens(address, &mut Browser::default(), |_, url| ann_logs_in(&provider, url, &json!({})));
        tokens["access_token"].as_str().unwrap().to_owned()
    };
    tokio::task::block_in_place(|| {
        let demo = run.address("demo");
        assert_eq!(Client::with_token(demo, &log_in(demo)).tools(), ["echo", "add", "time"]);
        let remote = run.address("remote");
        assert_eq!(authorization_server::call(remote.port(), &log_in(remote)).status, 200);
        let heads = heads.lock().unwrap();
        assert!(heads.iter().any(|head| head.contains("Bearer at-of-ann")), "{heads:?}");
        let joined = run.address("joined");
        let client = Client::with_token(joined, &log_in(joined));
        let tools = until(|| Some(client.tools()).filter(|tools| !tools.is_empty()));
        assert!(tools.is_some_and(|tools| tools.contains(&"open_echo".to_owned())), "{}", run.output());
    });
    assert_eq!(provider.requests("/token")[0].form["client_secret"], "s3cret");
    assert!(!run.output().contains("s3cret"), "{}", run.output());
}

/// The example with other ports.
pub(crate) fn example(provider: &Provider) -> (Run, SocketAddr) {
    let file = repository("examples/authorization-server/servers.yaml");
    let port = free_port();
    let text = fs::read_to_string(file).unwrap();
    let text = text.replace("9400", &provider.port.to_string()).replace("8090", &port.to_string());
    let manifests = Manifests::new(&text);
    let command = manifests.command();
    let run = Run::of(manifests, command);
    let address = run.address("guarded-by-login");
    (run, address)
}

#[test]
fn the_example_works_with_a_real_identity_provider() {
    let provider = Provider::start();
    let (_run, address) = example(&provider);
    let issued: Value =
        tokens(address, &mut Browser::default(), |browser, url| provider.log_in(browser, url));
    let client = Client::with_token(address, issued["access_token"].as_str().unwrap());
    assert_eq!(client.tools(), ["echo", "add", "time"]);
    let answer = client.call_tool("echo", json!({"message": "hello"}));
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("hello"), "{answer}");
}
