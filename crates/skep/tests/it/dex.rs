//! Users log in at dex, an identity provider that others wrote.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::json;
use skep_testkit::process::Process;

use crate::{
    authorization_server::{call, config, server},
    login::{Browser, follow_logins, tokens},
    proxy::{Proxy, free_port},
};

/// A hash of the password `any`.
const PASSWORD: &str = "$2b$10$abcdefghijklmnopqrstuuT1PPBw0YhHakFQ4r5M75JM1AR6OFCXi";

/// dex with one user, whose tokens are valid for seconds.
struct Dex {
    issuer: String,
    folder: PathBuf,
    _process: Process,
}

impl Dex {
    fn start(redirect_uri: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/programs");
        let built = Command::new(script).arg("--dex").output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let program = Path::new(String::from_utf8(built.stdout).unwrap().trim()).join("dex");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let issuer = format!("http://{address}/dex");
        let folder = std::env::temp_dir().join(format!("skep-dex-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let config = json!({
            "issuer": issuer, "storage": {"type": "memory"}, "web": {"http": address.to_string()},
            "oauth2": {"skipApprovalScreen": true}, "expiry": {"idTokens": "3s"}, "enablePasswordDB": true,
            "staticPasswords": [{"email": "ann", "hash": PASSWORD, "username": "Ann", "userID": "1"}],
            "staticClients": [{"id": "us", "name": "skep", "public": true, "redirectURIs": [redirect_uri]}],
        });
        let file = folder.join("dex.yaml");
        fs::write(&file, config.to_string()).unwrap();
        let process = Process::start(&program, ["serve", file.to_str().unwrap()], &folder).unwrap();
        while TcpStream::connect(address).is_err() {
            process.check().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { issuer, folder, _process: process }
    }
}

impl Drop for Dex {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_log_in_at_dex_and_the_server_gets_a_fresh_token_of_it() {
    let (port, (server, heads)) = (free_port(), server(Ipv4Addr::LOCALHOST.into()));
    let callback = format!("http://127.0.0.1:{port}/mcp/oauth/callback");
    let dex = Dex::start(&callback);
    let proxy = Proxy::with("dex", config(port, &dex.issuer, server, json!({})), &[]);
    proxy.expect_log("the authorization server is ready");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let issued = tokens(address, &mut Browser::default(), |_, url| follow_logins(url, &callback));
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
