//! A browser and an OAuth client, as users of an authorization server have them. Each test has its
//! own identity provider.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use form_urlencoded::Serializer;
use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, repository};

pub(crate) const REDIRECT: &str = "http://127.0.0.1:7777/cb";
/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A response.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).first().copied()
    }

    fn headers(&self, name: &str) -> Vec<&str> {
        let pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        pairs.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// A browser, whose cookies are those of each host.
#[derive(Default)]
pub(crate) struct Browser(BTreeMap<String, BTreeMap<String, String>>);

impl Browser {
    pub(crate) fn open(&mut self, url: &str) -> Page {
        self.send("GET", url, "", "")
    }

    /// Submits a form.
    pub(crate) fn submit(&mut self, url: &str, form: &[(String, String)]) -> Page {
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let origin = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        self.send("POST", url, &format!("origin: {origin}\r\n"), &body)
    }

    fn send(&mut self, method: &str, url: &str, headers: &str, body: &str) -> Page {
        let (host, path) = parts(url);
        let cookies = self.0.entry(host.clone()).or_default();
        let sent: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let headers = format!("{headers}cookie: {}\r\n", sent.join("; "));
        let type_ = "application/x-www-form-urlencoded";
        let page = request(method, &host, &path, &headers, (type_, body));
        for cookie in page.headers("set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            cookies.insert(name.to_owned(), value.to_owned());
        }
        page
    }
}

fn parts(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    (host.to_owned(), format!("/{path}"))
}

/// Sends a request.
pub(crate) fn request(method: &str, host: &str, path: &str, headers: &str, body: (&str, &str)) -> Page {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (type_, body) = body;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}content-type: {type_}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Page { status: status.unwrap_or_default(), head: head.to_owned(), body: body.to_owned() }
}

/// The value of a parameter in the query of an address.
pub(crate) fn parameter(url: &str, name: &str) -> String {
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let found = form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// The hidden fields of the forms of a page.
pub(crate) fn hidden_fields(page: &str) -> Vec<(String, String)> {
    let inputs = page.split(r#"<input type="hidden" name=""#).skip(1);
    let fields = inputs.map(|input| {
        let (name, rest) = input.split_once('"').unwrap();
        let value = rest.split_once(r#"value=""#).unwrap().1.split_once('"').unwrap().0;
        (name.to_owned(), value.replace("&amp;", "&").replace("&#39;", "'").replace("&quot;", "\""))
    });
    fields.collect()
}

/// A login at the authorization server at an address, whose resource is that address with `/mcp`. `provider` gets the
/// address of each identity provider, and returns where that sends the browser.
pub(crate) fn tokens(
    server: SocketAddr,
    browser: &mut Browser,
    provider: impl FnMut(&mut Browser, &str) -> String,
) -> Value {
    tokens_with(server, browser, "openid offline_access", provider)
}

/// The same with these scopes.
pub(crate) fn tokens_with(
    server: SocketAddr,
    browser: &mut Browser,
    scope: &str,
    mut provider: impl FnMut(&mut Browser, &str) -> String,
) -> Value {
    let (host, origin) = (server.to_string(), format!("http://{server}"));
    let metadata = json!({"client_name": "Notes", "redirect_uris": [REDIRECT]}).to_string();
    let registered = request("POST", &host, "/oauth/register", "", ("application/json", &metadata));
    assert_eq!(registered.status, 201, "{}", registered.body);
    let client = registered.json()["client_id"].as_str().unwrap().to_owned();
    let resource = format!("{origin}/mcp");
    let query = Serializer::new(String::new())
        .extend_pairs([
            ("response_type", "code"),
            ("client_id", &client),
            ("redirect_uri", REDIRECT),
            ("state", "of-client"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("scope", scope),
            ("resource", &resource),
        ])
        .finish();
    let page = browser.open(&format!("{origin}/oauth/authorize?{query}"));
    assert_eq!(page.status, 200, "{}{}", page.head, page.body);
    let mut form = hidden_fields(&page.body);
    form.push(("decision".into(), "allow".into()));
    let mut page = browser.submit(&format!("{origin}/oauth/consent"), &form);
    loop {
        let location =
            page.header("location").unwrap_or_else(|| panic!("{}{}", page.head, page.body)).to_owned();
        if location.starts_with(REDIRECT) {
            assert_eq!(parameter(&location, "error_description"), "");
            let code = parameter(&location, "code");
            let form = Serializer::new(String::new())
                .extend_pairs([
                    ("grant_type", "authorization_code"),
                    ("client_id", &client),
                    ("code", &code),
                    ("redirect_uri", REDIRECT),
                    ("code_verifier", VERIFIER),
                    ("resource", &resource),
                ])
                .finish();
            let type_ = "application/x-www-form-urlencoded";
            let page = request("POST", &host, "/oauth/token", "", (type_, &form));
            assert_eq!(page.status, 200, "{}", page.body);
            return page.json();
        }
        let back = provider(browser, &location);
        page = browser.open(&back);
    }
}

/// A fake identity provider with its metadata.
pub(crate) async fn fake_provider() -> IdentityProvider {
    let provider = IdentityProvider::start().await;
    let at = |path: &str| format!("{}{path}", provider.issuer);
    let metadata = json!({
        "issuer": provider.issuer, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "jwks_uri": at("/keys"),
    });
    provider.answer("/.well-known/openid-configuration", metadata);
    provider
}

/// Logs Ann in there, with more in the token response. Returns where the browser is sent.
pub(crate) fn ann_logs_in(provider: &IdentityProvider, url: &str, more: &Value) -> String {
    let id_token = provider.token(json!({"sub": "ann", "aud": "us", "nonce": parameter(url, "nonce")}));
    let mut response = json!({
        "access_token": "at-of-ann", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "rt-of-ann",
        "id_token": id_token,
    });
    response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    provider.answer("/token", response);
    format!("{}?code=x&state={}", parameter(url, "redirect_uri"), parameter(url, "state"))
}

/// The variable with the authorities that Node.js trusts as well.
pub(crate) const NODE_AUTHORITIES: &str = "NODE_EXTRA_CA_CERTS";

/// Opens an address in a browser that logs in as Ann at every provider, whose authorities may be in a file, and returns where it is
/// sent in the end.
pub(crate) fn follow_logins(address: &str, redirect_uri: &str, authorities: Option<&Path>) -> String {
    let script = repository("crates/skep/tests/it/run/judges/browser.mjs");
    let mut command = Command::new("node");
    command.envs(authorities.map(|file| (NODE_AUTHORITIES, file)));
    let output = command.arg(script).args([address, redirect_uri]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
