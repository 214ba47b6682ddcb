//! dex, an identity provider that others wrote.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{free_port, pki::Authority, process::Process, repository::install, scratch::Scratch};

/// A hash of the password.
const HASH: &str = "$2b$10$abcdefghijklmnopqrstuuT1PPBw0YhHakFQ4r5M75JM1AR6OFCXi";

/// dex on loopback, with the user `ann`, whose password is `any`, and a public client `us`. It ends when it is dropped.
pub struct Dex {
    /// Its name, which is also its address.
    pub issuer: String,
    // Before the scratch folder: fields are dropped in this order.
    _process: Process,
    scratch: Scratch,
}

impl Dex {
    /// Starts one without TLS, whose client has this redirect URI and whose tokens are valid for so long, such as `3s`.
    pub fn start(redirect_uri: &str, life: &str) -> Self {
        Self::serving("http", &[redirect_uri.to_owned()], life)
    }

    /// Starts one with TLS, with its own certificate authority.
    pub fn start_with_tls(redirect_uri: &str, life: &str) -> Self {
        Self::for_any_of(&[redirect_uri.to_owned()], life)
    }

    /// The same with several redirect URIs: it compares them with their ports.
    pub fn for_any_of(redirect_uris: &[String], life: &str) -> Self {
        Self::serving("https", redirect_uris, life)
    }

    fn serving(scheme: &str, redirect_uris: &[String], life: &str) -> Self {
        let scratch = Scratch::new().expect("a folder");
        let folder = scratch.path();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let issuer = format!("{scheme}://{address}/dex");
        let config = json!({
            "issuer": issuer, "storage": {"type": "memory"}, "web": web(scheme, address, folder),
            "oauth2": {"skipApprovalScreen": true}, "expiry": {"idTokens": life}, "enablePasswordDB": true,
            "staticPasswords": [{"email": "ann", "hash": HASH, "username": "Ann", "userID": "1"}],
            "staticClients": [{"id": "us", "name": "skep", "public": true, "redirectURIs": redirect_uris}],
        });
        let file = folder.join("dex.yaml");
        fs::write(&file, config.to_string()).expect("a file");
        let args = ["serve".to_owned(), file.display().to_string()];
        let process = Process::start(&program(), args, folder).expect("dex starts");
        while TcpStream::connect(address).is_err() {
            process.check().expect("dex runs");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { issuer, _process: process, scratch }
    }

    /// The file with its certificate authority, if it has one.
    pub fn authority(&self) -> PathBuf {
        self.scratch.path().join("ca.crt")
    }
}

/// How it listens.
fn web(scheme: &str, address: SocketAddr, folder: &Path) -> Value {
    if scheme == "http" {
        return json!({"http": address.to_string()});
    }
    let authority = Authority::create(folder).expect("an authority");
    let identity = authority.server().expect("a certificate");
    let (certificate, key) = (folder.join("dex.crt"), folder.join("dex.key"));
    fs::write(&certificate, identity.certificate).expect("a file");
    fs::write(&key, identity.key).expect("a file");
    json!({"https": address.to_string(), "tlsCert": certificate, "tlsKey": key})
}

fn program() -> PathBuf {
    install("programs", &["--dex"]).expect("a Dex").join("dex")
}
