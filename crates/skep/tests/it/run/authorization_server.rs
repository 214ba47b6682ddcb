//! Servers whose users log in at an identity provider: what a manifest for a cluster has works on loopback, too.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use super::{Client, DEMO, Manifests, Run, life::own_address, server, until};
use crate::{
    authorization_server,
    login::{Browser, ann_logs_in, fake_provider, tokens},
    proxy::free_port,
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

fn object(kind: &str, name: &str, spec: &str) -> String {
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

fn oidc_ref(host: &str) -> String {
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

/// The identity provider of the example, as a process.
pub(crate) struct Provider {
    process: Child,
    pub(crate) port: u16,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let script = root.join("examples/authorization-server/identity-provider.mjs");
        let port = free_port();
        let path = format!("{}/.bin:{}", modules().display(), std::env::var("PATH").unwrap());
        let mut process = Command::new("node")
            .arg(script)
            .arg(port.to_string())
            .env("PATH", path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        // It prints more, and must not wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        assert!(line.contains("the identity provider is at"), "{line}");
        Self { process, port }
    }

    /// Logs a user in, in the pages that it shows. Returns where it sends the browser at the end.
    pub(crate) fn log_in(&self, browser: &mut Browser, url: &str) -> String {
        let origin = format!("http://127.0.0.1:{}", self.port);
        let absolute = |location: &str| match location.starts_with('/') {
            true => format!("{origin}{location}"),
            false => location.to_owned(),
        };
        let mut page = browser.open(url);
        for _ in 0..12 {
            if let Some(location) = page.header("location") {
                let location = absolute(location);
                if !location.starts_with(&origin) {
                    return location;
                }
                page = browser.open(&location);
                continue;
            }
            assert_eq!(page.status, 200, "{}{}", page.head, page.body);
            let between = |text: &str, before: &str| {
                let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}")).1;
                rest.split('"').next().unwrap().to_owned()
            };
            let action = absolute(&between(&page.body, "action=\""));
            let prompt = between(page.body.split_once("name=\"prompt\"").unwrap().1, "value=\"");
            let form = [("prompt", &*prompt), ("login", "ann"), ("password", "any")];
            page = browser.submit(&action, &form.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        panic!("the login at the provider does not end: {}", page.body)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The folder of the modules from npm.
pub(crate) fn modules() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/npm");
    let output = Command::new(script).arg("oauth").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().trim_end_matches('/').into()
}

/// The example with other ports.
pub(crate) fn example(provider: &Provider) -> (Run, SocketAddr) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/authorization-server/servers.yaml");
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

/// A virtual server whose users log in at two providers, one after the other.
fn chained(provider: &Provider) -> String {
    let at = format!("http://127.0.0.1:{}", provider.port);
    let upstream = |name: &str| {
        format!(
            "{{name: {name}, type: oauth2, oauth2Config: {{authorizationEndpoint: \"{at}/auth\", tokenEndpoint: \
             \"{at}/token\", userInfo: {{endpointUrl: \"{at}/me\"}}, clientId: skep, clientSecretRef: {{name: login, key: \
             secret}}, scopes: [openid, offline_access], additionalAuthorizationParams: {{prompt: consent}}}}}}"
        )
    };
    let all = format!(
        "  groupRef: {{name: all}}\n  incomingAuth: {{type: oidc, oidcConfigRef: {}}}\n  authServerConfig: \
         {{issuer: \"https://c.example\", upstreamProviders: [{}, {}]}}",
        oidc_ref("c.example"),
        upstream("first"),
        upstream("second")
    );
    let tokens = "  type: inline\n  inline: {issuer: \"https://c.example\"}";
    let secret =
        "---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {secret: replace-me}\n";
    [
        server("open", DEMO, "  groupRef: {name: all}"),
        object("MCPGroup", "all", "  description: all"),
        object("VirtualMCPServer", "joined", &all),
        object("MCPOIDCConfig", "c.example", tokens),
        secret.to_owned(),
    ]
    .concat()
}

#[test]
fn clients_that_others_wrote_log_in_through_two_providers() {
    let provider = Provider::start();
    let run = Run::start(&chained(&provider));
    let url = format!("http://{}/mcp", run.address("joined"));
    run.expect_output("echo, add, time");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/run/judges");
    for judge in ["oauth4webapi", "openid-client", "sdk"] {
        let judged = Command::new("node")
            .arg(folder.join("judge.mjs"))
            .arg(modules())
            .args([judge, &url])
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&judged.stderr);
        assert!(judged.status.success(), "{judge}: {complaint}{}", run.output());
        let tools: Vec<String> = serde_json::from_slice(&judged.stdout).unwrap();
        assert!(tools.iter().any(|tool| tool == "open_echo"), "{judge}: {tools:?}");
    }
}
