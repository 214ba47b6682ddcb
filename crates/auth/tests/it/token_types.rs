//! Types of tokens, in every flow that obtains one for a server.

use serde_json::{Value, json};
use skep_auth::CrossAppAccess;
use skep_testkit::IdentityProvider;

use crate::{cross_app, exchange::exchanger, on_behalf_of::flow};

#[tokio::test]
async fn a_token_of_another_type_is_not_sent_to_servers() {
    const TOKEN: &str = "/token";
    let provider = IdentityProvider::start().await;
    let (cross_app_provider, access) = cross_app::started().await;
    let mut with_secret = cross_app::config(&cross_app_provider);
    with_secret.target.client_secret = "s3cret".into();
    let own_access = CrossAppAccess::new(&with_secret).unwrap();
    let on_behalf_of = flow(format!("{}{TOKEN}", provider.issuer));
    let exchanger = exchanger(&provider, json!({}));
    let obtain = |flow: &'static str, caller: String| {
        let (exchanger, on_behalf_of, access, own_access) = (&exchanger, &on_behalf_of, &access, &own_access);
        async move {
            match flow {
                "token exchange" => exchanger.exchange(&caller).await,
                "token exchange, own token" => exchanger.own_token().await.unwrap(),
                "on behalf of" => on_behalf_of.exchange(&caller).await,
                "cross-app access" => access.exchange(&caller).await,
                _ => own_access.own_token().await.unwrap(),
            }
        }
    };
    for (flow, endpoint, path) in [
        ("token exchange", &provider, TOKEN),
        ("token exchange, own token", &provider, TOKEN),
        ("on behalf of", &provider, TOKEN),
        ("cross-app access", &cross_app_provider, cross_app::TARGET),
        ("cross-app access, own token", &cross_app_provider, cross_app::TARGET),
    ] {
        let answer = |type_: Value| {
            let issued = "urn:ietf:params:oauth:token-type:access_token";
            json!({"access_token": "hidden", "token_type": type_, "issued_token_type": issued})
        };
        for type_ in [
            json!("DPoP"),
            json!("N_A"),
            json!("pop"),
            json!("mac"),
            json!("Bearer "),
            json!(""),
            Value::Null,
            json!(7),
        ] {
            endpoint.answer(path, answer(type_.clone()));
            let error = obtain(flow, format!("caller-{type_}")).await.unwrap_err().to_string();
            assert!(error.contains("token_type") && !error.contains("hidden"), "{flow}: {type_}: {error}");
        }
        for type_ in ["Bearer", "bearer", "BEARER"] {
            endpoint.answer(path, answer(json!(type_)));
            let token = obtain(flow, format!("caller-{type_}")).await;
            assert_eq!(token.unwrap(), "hidden", "{flow}: {type_}");
        }
    }
}
