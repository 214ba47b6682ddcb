//! Users of the API server.

use std::{
    fs,
    path::{Path, PathBuf},
};

use k8s_openapi::ByteString;
use kube::{Client, Config, config::AuthInfo};
use serde_json::{Value, json};

use crate::{Link, audit::Recording, pki::Authority};

/// A user of the API server with its own credentials.
#[derive(Clone)]
pub struct User {
    name: String,
    folder: PathBuf,
    kubeconfig: Value,
    config: Config,
}

impl User {
    pub(crate) fn admin(folder: &Path) -> Self {
        Self::new(folder, "admin", &["system:masters"])
    }

    /// A user of the control plane whose folder this is.
    pub(crate) fn new(folder: &Path, name: &str, groups: &[&str]) -> Self {
        let authority = Authority::open(folder).expect("the authority of the control plane");
        let identity = authority.user(name, groups).expect("a certificate");
        let server = fs::read_to_string(folder.join("server")).expect("the address of the API server");
        let user = json!({
            "client-certificate-data": ByteString(identity.certificate.into_bytes()),
            "client-key-data": ByteString(identity.key.into_bytes()),
        });
        let mut config = Config::new(server.parse().expect("a URL"));
        config.root_cert = Some(vec![authority.der]);
        config.auth_info = serde_json::from_value::<AuthInfo>(user.clone()).expect("credentials");
        let cluster = json!({"server": server, "certificate-authority-data": ByteString(authority.pem)});
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        });
        Self { name: name.into(), folder: folder.into(), kubeconfig, config }
    }

    /// The name in the API server and the audit log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A new client.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("a client")
    }

    /// How the client is configured, for a program under test that makes its own.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// The same through a link of its own, which can be cut.
    pub async fn linked_config(&self) -> (Config, Link) {
        let port = self.config.cluster_url.port_u16().expect("the port of the API server");
        let link = Link::to(port).await.expect("a link");
        let mut config = self.config();
        config.cluster_url = format!("https://{}", link.address()).parse().expect("a URL");
        (config, link)
    }

    /// A kubeconfig file, for programs.
    pub fn kubeconfig_file(&self) -> PathBuf {
        let file = self.folder.join(format!("{}.kubeconfig", self.name));
        fs::write(&file, self.kubeconfig.to_string()).expect("the kubeconfig is written");
        file
    }

    /// Counts this user's requests from now on.
    pub fn record(&self) -> Recording {
        Recording::start(&self.folder, &self.name)
    }
}
