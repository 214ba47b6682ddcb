//! The addresses that are connected to, and what is sent there.

use std::{fs, time::Duration};

use serde_json::json;
use skep_auth::{AuthenticationError, Pace};
use skep_testkit::IdentityProvider;

use crate::fixture::{CONFIGURATION, Fixture, KEYS, authenticator};

#[tokio::test]
async fn a_private_address_is_not_connected_to_unless_that_is_allowed() {
    let provider = IdentityProvider::start().await;
    let port = provider.issuer.rsplit(':').next().unwrap().to_owned();
    // By name, by address, and by notations that only some parse as an address: the address that is connected to
    // counts.
    for host in ["localhost", "127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let keys = format!("http://{host}:{port}/keys");
        let changes = json!({"JWKSURL": keys, "AllowPrivateIP": false});
        let fixture = Fixture::with(&provider, changes, Pace::default());
        assert_eq!(
            fixture.check(&provider.token(json!({}))).await,
            Err(AuthenticationError::Unavailable),
            "{host}"
        );
    }
    assert!(provider.requests(KEYS).is_empty());
    let fixture = Fixture::with(
        &provider,
        json!({"JWKSURL": format!("http://localhost:{port}/keys")}),
        Pace::default(),
    );
    assert!(fixture.check(&provider.token(json!({}))).await.is_ok());
}

#[tokio::test]
async fn issuer_metadata_cannot_lead_to_another_issuer_or_to_plain_http() {
    let provider = IdentityProvider::start_with_tls().await;
    let victim = IdentityProvider::start().await;
    let document = |issuer: &str, keys: &str| json!({"issuer": issuer, "jwks_uri": keys});
    let plain = format!("{}/keys", victim.issuer);
    for (what, answer) in [
        ("keys in plain text", document(&provider.issuer, &plain)),
        ("a file", document(&provider.issuer, "file:///etc/passwd")),
        ("nothing", document(&provider.issuer, "")),
        ("another issuer", document("https://issuer.example", &format!("{}/keys", provider.issuer))),
        ("no document", json!([])),
        (
            "a redirect elsewhere",
            json!({"status": 302, "location": format!("{}{CONFIGURATION}", victim.issuer)}),
        ),
    ] {
        provider.answer(CONFIGURATION, answer);
        let fixture = Fixture::new(&provider);
        assert_eq!(
            fixture.check(&provider.token(json!({}))).await,
            Err(AuthenticationError::Unavailable),
            "{what}"
        );
    }
    assert!(victim.requests(KEYS).is_empty() && victim.requests(CONFIGURATION).is_empty());
}

#[tokio::test]
async fn only_the_named_authority_is_trusted() {
    let provider = IdentityProvider::start_with_tls().await;
    assert!(Fixture::new(&provider).check(&provider.token(json!({}))).await.is_ok());
    let other = IdentityProvider::start_with_tls().await;
    let others = other.authority.as_ref().unwrap().display().to_string();
    for path in [others.as_str(), ""] {
        let fixture = Fixture::with(&provider, json!({"CACertPath": path}), Pace::default());
        assert_eq!(
            fixture.check(&provider.token(json!({}))).await,
            Err(AuthenticationError::Unavailable),
            "{path:?}"
        );
    }
}

#[tokio::test]
async fn the_token_for_the_issuer_is_read_again_each_time() {
    let provider = IdentityProvider::start_with_tls().await;
    let file = provider.authority.as_ref().unwrap().with_file_name("token");
    let pace = Pace { pause: Duration::from_millis(10), ..Pace::default() };
    let fixture = Fixture::with(&provider, json!({"AuthTokenFile": file.display().to_string()}), pace);
    let token = provider.token(json!({}));
    assert_eq!(fixture.check(&token).await, Err(AuthenticationError::Unavailable), "there is no file yet");
    tokio::time::sleep(Duration::from_millis(20)).await;
    fs::write(&file, "one\n").unwrap();
    assert!(fixture.check(&token).await.is_ok());
    fs::write(&file, "two").unwrap();
    provider.rotate();
    assert!(fixture.check(&provider.token(json!({}))).await.is_ok());
    let sent: Vec<_> =
        provider.requests(KEYS).iter().map(|request| request.headers["authorization"].clone()).collect();
    assert_eq!(sent, ["Bearer one", "Bearer two"]);
}

#[tokio::test]
async fn a_response_that_is_too_large_and_endless_redirects_are_errors() {
    let provider = IdentityProvider::start().await;
    provider.answer(KEYS, json!({"keys": [], "padding": "x".repeat(600 << 10)}));
    let fixture = Fixture::new(&provider);
    assert_eq!(fixture.check(&provider.token(json!({}))).await, Err(AuthenticationError::Unavailable));
    let circle = json!({"status": 307, "location": "/keys"});
    provider.answer(KEYS, circle);
    let fixture = Fixture::new(&provider);
    assert_eq!(fixture.check(&provider.token(json!({}))).await, Err(AuthenticationError::Unavailable));
    assert_eq!(provider.requests(KEYS).len(), 1 + 4);
}

#[tokio::test]
async fn a_redirect_at_the_same_host_is_followed() {
    let provider = IdentityProvider::start().await;
    provider.answer("/moved", json!({"status": 302, "location": "/keys"}));
    let fixture =
        Fixture::with(&provider, json!({"JWKSURL": format!("{}/moved", provider.issuer)}), Pace::default());
    assert!(fixture.check(&provider.token(json!({}))).await.is_ok());
}

#[tokio::test]
async fn an_invalid_configuration_is_rejected() {
    let provider = IdentityProvider::start().await;
    let plain = format!("{} is unencrypted, which is not allowed", provider.issuer);
    for (changes, message) in [
        (json!({"InsecureAllowHTTP": false}), format!("Issuer: {plain}")),
        (json!({"JWKSURL": "keys"}), "JWKSURL: it must be an absolute http or https URL".into()),
        (
            json!({"IntrospectionURL": "ftp://a"}),
            "IntrospectionURL: it must be an absolute http or https URL".into(),
        ),
        (json!({"Issuer": ""}), "one of Issuer, JWKSURL and IntrospectionURL must be set".into()),
        (
            json!({"Audience": "", "IntrospectionURL": "https://oauth2.googleapis.com/tokeninfo"}),
            "Audience: Google reports the audience of a token and does not check it: set it to your client ID"
                .into(),
        ),
        (
            json!({"CACertPath": "/nowhere/ca.crt"}),
            "CACertPath: /nowhere/ca.crt: No such file or directory (os error 2)".into(),
        ),
    ] {
        let error =
            authenticator(&provider, changes.clone(), Pace::default()).err().map(|error| error.to_string());
        assert_eq!(error, Some(message), "{changes}");
    }
    assert!(authenticator(&provider, json!({}), Pace::default()).is_ok());
}
