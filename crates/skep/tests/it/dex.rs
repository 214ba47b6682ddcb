//! Users log in at dex, an identity provider that others wrote.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use serde_json::json;
use skep_testkit::{Dex, free_port};

use crate::{
    authorization_server::{call, config, server},
    login::{Browser, follow_logins, tokens},
    proxy::Proxy,
};

#[tokio::test(flavor = "multi_thread")]
async fn users_log_in_at_dex_and_the_server_gets_a_fresh_token_of_it() {
    let (port, (server, heads)) = (free_port(), server(Ipv4Addr::LOCALHOST.into()));
    let callback = format!("http://127.0.0.1:{port}/mcp/oauth/callback");
    let dex = Dex::start(&callback, "3s");
    let proxy = Proxy::with("dex", config(port, &dex.issuer, server, json!({})), &[]);
    proxy.expect_log("the authorization server is ready");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let issued = tokens(address, &mut Browser::default(), |_, url| follow_logins(url, &callback, None));
    let token = issued["access_token"].as_str().unwrap();
    let bearer = || {
        assert_eq!(call(port, token).status, 200);
        let heads = heads.lock().unwrap();
        let line = heads
            .last()
            .unwrap()
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
        line.unwrap().to_owned()
    };
    let first = bearer();
    assert!(first.contains("Bearer ey") && !first.contains(token), "{first}");
    // It expires, and dex issues another one.
    while bearer() == first {
        std::thread::sleep(Duration::from_millis(50));
    }
}
