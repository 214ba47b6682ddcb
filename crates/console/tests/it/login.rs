//! A login at a real OpenID provider, whose ID tokens a real API server accepts.

use std::process::Command;

use skep_console::{Login, LoginSettings};
use skep_testkit::{ControlPlane, Dex, repository};

use super::*;

/// The end of a login: where the browser is led, and its cookies.
struct End {
    location: String,
    cookies: Vec<String>,
}

impl End {
    /// The session that the browser has, as a cookie.
    fn session(&self) -> Option<&str> {
        let session = self.cookies.iter().find(|cookie| cookie.starts_with("__Host-skep-console="))?;
        session.split(';').next()
    }
}

/// A browser at the console.
struct Browser(Page);

impl Browser {
    fn new(address: SocketAddr) -> Self {
        Self(Page::new(address))
    }

    /// Begins a login as the page does, and returns the address of the provider.
    async fn begin(&mut self) -> String {
        self.0.headers.insert("x-skep-console", HeaderValue::from_static("1"));
        let response = self.0.send(Method::POST, "login", "").await;
        assert_eq!(response.status(), StatusCode::OK);
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
        for attribute in ["__Host-skep-login=", "Secure", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"]
        {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        let pair = cookie.split(';').next().unwrap();
        self.0.headers.insert(header::COOKIE, HeaderValue::from_str(pair).unwrap());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["location"].as_str().unwrap().to_owned()
    }

    /// Opens the address at which the provider sends a browser back.
    async fn end(&self, uri: &str) -> End {
        let response = self.0.request(Method::GET, uri, "").await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        End {
            location: text(&response.headers()[header::LOCATION]),
            cookies: response.headers().get_all(header::SET_COOKIE).iter().map(text).collect(),
        }
    }
}

/// Logs Ann in at the provider, and returns the path and query at which it sends her browser back to the console.
fn log_in_at(dex: &Dex, location: &str, redirect_uri: &str) -> String {
    let script = repository("crates/skep/tests/it/run/judges/browser.mjs");
    let output = Command::new("node")
        .arg(script)
        .args([location, redirect_uri])
        .env("NODE_EXTRA_CA_CERTS", dex.authority())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let end: http::Uri = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    end.path_and_query().unwrap().to_string()
}

/// The parameters of an address.
fn parameter(uri: &str, name: &str) -> String {
    let query = uri.split_once('?').unwrap().1;
    let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    pair.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_logs_in_at_dex_and_sees_what_the_cluster_lets_them_get() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let redirect_uri = format!("http://{address}/login/callback");
    let dex = Dex::start_with_tls(&redirect_uri, "90s");
    let plane = ControlPlane::start_with(&[
        format!("--oidc-issuer-url={}", dex.issuer),
        "--oidc-client-id=us".into(),
        "--oidc-username-claim=email".into(),
        "--oidc-username-prefix=oidc:".into(),
        format!("--oidc-ca-file={}", dex.authority().display()),
    ])
    .await;
    let (test, other) = (plane.namespace().await, plane.namespace().await);
    server(&test, "mine").await;
    server(&other, "theirs").await;
    let role: k8s_openapi::api::rbac::v1::Role = serde_json::from_value(
        json!({"metadata": {"name": "ann"}, "rules": [may_get(&["mcpservers"], &[])]}),
    )
    .unwrap();
    test.create_object(&role).await;
    let binding: k8s_openapi::api::rbac::v1::RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ann"},
        "subjects": [{"kind": "User", "name": "oidc:ann", "apiGroup": "rbac.authorization.k8s.io"}],
    }))
    .unwrap();
    test.create_object(&binding).await;

    let user = test.user("console");
    test.grant_everywhere(&user, rules()).await;
    let objects = Arc::new(Objects::default());
    tokio::spawn(follow(user.client(), Vec::new(), objects.clone()));
    let settings = LoginSettings {
        issuer: dex.issuer.clone(),
        client_id: "us".into(),
        scopes: vec!["email".into()],
        authorities: Some(dex.authority()),
        ..LoginSettings::default()
    };
    let login = Login::new(settings, &format!("http://{address}")).unwrap();
    let access = Access::Cluster(Box::new(ClusterAccess::new(&user.config()).with_login(login)));
    let console = Arc::new(Console::new(objects, Arc::default(), access).unwrap());
    tokio::spawn(serve(listener, console, Workers::default(), std::future::pending()));

    // The page of another site begins no login.
    let stranger = Browser::new(address);
    assert_eq!(stranger.0.send(Method::POST, "login", "").await.status(), StatusCode::FORBIDDEN);
    let (status, body) = stranger.0.get("objects").await;
    let offered: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &offered["provider"]), (StatusCode::UNAUTHORIZED, &json!("127.0.0.1")));

    let mut ann = Browser::new(address);
    let location = ann.begin().await;
    assert_eq!(parameter(&location, "code_challenge_method"), "S256");
    for name in ["state", "nonce", "code_challenge"] {
        assert_eq!(parameter(&location, name).len(), 43, "{name} in {location}");
    }
    let back = log_in_at(&dex, &location, &redirect_uri);

    // Another browser ends this login neither without a cookie nor with that of its own login.
    let mut victim = Browser::new(address);
    for _ in 0..2 {
        let end = victim.end(&back).await;
        assert_eq!((end.location.as_str(), end.session()), ("/#login=unknown", None));
        victim.begin().await;
    }
    let altered = back.replace(&parameter(&back, "code"), "forged");
    let end = ann.end(&altered).await;
    assert_eq!((end.location.as_str(), end.session()), ("/#login=provider", None));

    // The API server fetches the keys of dex in the background after its start.
    let mut back = back;
    let end = loop {
        let end = ann.end(&back).await;
        if end.session().is_some() {
            break end;
        }
        assert_eq!(end.location, "/#login=cluster");
        back = log_in_at(&dex, &ann.begin().await, &redirect_uri);
    };
    assert_eq!(end.location, "/");
    let [session, cleared] = end.cookies.as_slice() else { panic!("{:?}", end.cookies) };
    for attribute in ["__Host-", "Secure", "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(session.contains(attribute), "{session}");
    }
    let seconds: u64 = session.split_once("Max-Age=").unwrap().1.parse().unwrap();
    assert!((1..=90).contains(&seconds), "the session ends with the ID token: {session}");
    assert!(cleared.starts_with("__Host-skep-login=;") && cleared.ends_with("Max-Age=0"), "{cleared}");

    // On a port of the user's machine, the session is in what a browser does not send.
    let mut local = Browser::new(address);
    local.0.headers.insert(header::HOST, HeaderValue::from_static("localhost:8080"));
    let returned = log_in_at(&dex, &local.begin().await, &redirect_uri);
    let to_page = local.end(&returned).await;
    assert!(to_page.location.starts_with("/#token=skep-session-"), "{}", to_page.location);
    assert_eq!(to_page.session(), None);

    // The same code is worth nothing a second time.
    assert_eq!(ann.end(&back).await.session(), None);

    let mut page = Page::new(address);
    page.headers.insert(header::COOKIE, HeaderValue::from_str(end.session().unwrap()).unwrap());
    until("the console shows what is hers", async || page.names().await == ["mine"]).await;
    let (_, shown) = page.get("session").await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["user"], "oidc:ann");
    let (status, _) = page.get(&format!("objects/MCPServer/{}/theirs", other.name())).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
