//! Clients of OAuth that others wrote, as judges: discovery, registration, login through two providers, refresh and a tool
//! call. A client registers, or its id is the address of a document. Others wrote the providers as well: oidc-provider is used by OAuth
//! alone, and dex by OpenID Connect.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rmcp::{
    ServiceExt,
    model::CallToolRequestParams,
    transport::{
        AuthClient, StreamableHttpClientTransport,
        auth::{AuthorizationRequest, OAuthState},
        streamable_http_client::{StreamableHttpClient, StreamableHttpClientTransportConfig},
    },
};
use serde_json::json;
use skep_testkit::{Dex, IdentityProvider, free_port, install, repository};

use super::{
    DEMO, Manifests, Run,
    authorization_server::{object, oidc_ref},
    identity_provider::{Provider, modules},
    server,
};
use crate::login::{Browser, NODE_AUTHORITIES, REDIRECT, follow_logins, request};

/// The ports that `skep run` chooses for a virtual server.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// A virtual server whose users log in at two providers, one after the other.
fn chained(provider: &Provider, dex: &Dex) -> String {
    let at = format!("http://127.0.0.1:{}", provider.port);
    let first = format!(
        "{{name: first, type: oauth2, oauth2Config: {{authorizationEndpoint: \"{at}/auth\", tokenEndpoint: \
         \"{at}/token\", userInfo: {{endpointUrl: \"{at}/me\"}}, clientId: skep, clientSecretRef: {{name: login, key: \
         secret}}, scopes: [openid, offline_access], additionalAuthorizationParams: {{prompt: consent}}}}}}"
    );
    let second = format!(
        "{{name: second, type: oidc, oidcConfig: {{issuerUrl: \"{}\", clientId: us, scopes: [openid, profile, \
         offline_access]}}}}",
        dex.issuer
    );
    let all = format!(
        "  groupRef: {{name: all}}\n  incomingAuth: {{type: oidc, oidcConfigRef: {}}}\n  authServerConfig: \
         {{issuer: \"https://c.example\", cimd: {{enabled: true}}, upstreamProviders: [{first}, {second}]}}",
        oidc_ref("c.example"),
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

/// The virtual server with its providers, and the document of a client.
struct Court {
    run: Run,
    url: String,
    documents: IdentityProvider,
    dex: Dex,
    _provider: Provider,
}

impl Court {
    async fn open() -> Self {
        let documents = IdentityProvider::start_with_tls().await;
        let provider = Provider::start();
        let callbacks: Vec<_> = PORTS.map(|port| format!("http://127.0.0.1:{port}/oauth/callback")).collect();
        let dex = Dex::for_any_of(&callbacks, "1h");
        let manifests = Manifests::new(&chained(&provider, &dex));
        // Browsers visit dex; the server visits the host of the document as well.
        let authorities = manifests.0.join("authorities.pem");
        let read = |file: &Path| fs::read_to_string(file).unwrap();
        fs::write(&authorities, read(documents.authority.as_ref().unwrap()) + &read(&dex.authority()))
            .unwrap();
        let mut command = manifests.command();
        command.env("SSL_CERT_FILE", &authorities);
        let run = Run::of(manifests, command);
        let url = format!("http://{}/mcp", run.address("joined"));
        run.expect_output("echo, add, time");
        Self { run, url, documents, dex, _provider: provider }
    }

    fn document(&self) -> String {
        let id = format!("{}/client.json", self.documents.issuer);
        let document = json!({
            "client_id": id, "client_name": "A client with a document", "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        self.documents.answer("/client.json", document);
        id
    }

    /// Has a judge do everything twice: it registers, and it has a document.
    fn judge(&self, judge: &str, command: impl Fn() -> Command) {
        let document = self.document();
        for id in [None, Some(&document)] {
            let judged = command()
                .env(NODE_AUTHORITIES, self.dex.authority())
                .arg(judge)
                .arg(&self.url)
                .args(id)
                .output()
                .unwrap();
            let complaint = String::from_utf8_lossy(&judged.stderr);
            assert!(judged.status.success(), "{judge} {id:?}: {complaint}{}", self.run.output());
            let tools: Vec<String> = serde_json::from_slice(&judged.stdout).unwrap();
            assert!(tools.iter().any(|tool| tool == "open_echo"), "{judge}: {tools:?}");
        }
        assert!(!self.documents.requests("/client.json").is_empty(), "{judge} has not used its document");
    }
}

/// A file of the judges.
fn file(name: &str) -> PathBuf {
    repository("crates/skep/tests/it/run/judges").join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_in_typescript_that_others_wrote_log_in_through_two_providers() {
    let court = Court::open().await;
    for judge in ["oauth4webapi", "openid-client", "sdk"] {
        court.judge(judge, || {
            let mut command = Command::new("node");
            command.arg(file("judge.mjs")).arg(modules());
            command
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_in_python_that_others_wrote_log_in_through_two_providers() {
    let (court, python) = (Court::open().await, install("pypi", &["mcp"]).unwrap());
    for judge in ["authlib", "sdk"] {
        court.judge(judge, || {
            let mut command = Command::new(&python);
            command.arg("-B").arg(file("judge.py"));
            command
        });
    }
}

/// The HTTP client that the SDK uses by itself.
fn http_client<C: StreamableHttpClient + Default>(
    _: fn(StreamableHttpClientTransportConfig) -> StreamableHttpClientTransport<C>,
) -> C {
    C::default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_the_rust_sdk_logs_in_through_two_providers() {
    let court = Court::open().await;
    let document = court.document();
    for id in [None, Some(&document)] {
        let mut state = OAuthState::new(&*court.url, None).await.unwrap();
        let mut wanted = AuthorizationRequest::new(REDIRECT)
            .with_client_name("rmcp")
            .with_scopes(["openid", "offline_access"]);
        if let Some(id) = id {
            wanted = wanted.with_client_metadata_url(id);
        }
        state.start_authorization(wanted).await.unwrap();
        let address = state.get_authorization_url().await.unwrap();
        let back =
            tokio::task::block_in_place(|| follow_logins(&address, REDIRECT, Some(&court.dex.authority())));
        state.handle_callback_url(&back).await.unwrap();
        state.refresh_token().await.unwrap();
        assert!(id.is_none_or(|id| {
            address.contains(&*form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>())
        }));
        let http = AuthClient::new(
            http_client(StreamableHttpClientTransport::from_config),
            state.into_authorization_manager().unwrap(),
        );
        let config = StreamableHttpClientTransportConfig::with_uri(&*court.url);
        let client = ().serve(StreamableHttpClientTransport::with_client(http, config)).await.unwrap();
        let call = json!({"name": "open_echo", "arguments": {"message": "hello"}});
        let call: CallToolRequestParams = serde_json::from_value(call).unwrap();
        let result = serde_json::to_value(client.call_tool(call).await.unwrap()).unwrap();
        assert!(result["content"][0]["text"].as_str().unwrap().contains("hello"), "{result}");
        client.cancel().await.unwrap();
    }
    assert!(!court.documents.requests("/client.json").is_empty());
}

/// The suite prints an address, and waits until a browser has logged in there.
#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_of_mcp_for_authorization_servers_passes() {
    let court = Court::open().await;
    let suite = install("npm", &["conformance"]).unwrap();
    let (host, port) = (court.run.address("joined").to_string(), free_port());
    let redirect_uri = format!("http://127.0.0.1:{port}/callback");
    let metadata = json!({"client_name": "conformance", "redirect_uris": [redirect_uri]}).to_string();
    let registered = request("POST", &host, "/oauth/register", "", ("application/json", &metadata));
    let client = registered.json()["client_id"].as_str().unwrap().to_owned();
    // Its Node.js is beside it.
    let path = format!("{}:{}", suite.parent().unwrap().display(), env::var("PATH").unwrap());
    let mut judging = Command::new(&suite)
        .args(["authorization", "--url", &format!("http://{host}"), "--client-id", &client])
        .args(["--resource", &court.url, "--port", &port.to_string()])
        .env("PATH", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(judging.stdout.take().unwrap());
    let mut text = String::new();
    let address = loop {
        let mut line = String::new();
        assert_ne!(printed.read_line(&mut line).unwrap(), 0, "{text}");
        text.push_str(&line);
        if line.starts_with("http") {
            break line.trim().to_owned();
        }
    };
    Browser::default().open(&follow_logins(&address, &redirect_uri, Some(&court.dex.authority())));
    printed.read_to_string(&mut text).unwrap();
    assert!(judging.wait().unwrap().success(), "{text}");
    // The metadata, documents of clients, and the grant. One that is skipped is no success.
    assert!(text.contains("Total: 3 passed, 0 failed"), "{text}");
}
