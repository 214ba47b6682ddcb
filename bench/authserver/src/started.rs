//! Programs with an identity provider behind them.

use std::{fs, net::SocketAddr, path::PathBuf};

use anyhow::Result;
use serde_json::json;
use skep_bench_harness::{Program, Running, free_port};

/// A program that runs, until this is dropped.
pub(crate) struct Started {
    pub(crate) running: Running,
    _provider: Running,
    folder: PathBuf,
}

impl Started {
    /// Starts a program with an identity provider of its own.
    pub(crate) async fn new(program: &Program) -> Result<Self> {
        let (provider, _) = Running::own(&["--serve"]).await?;
        let port = free_port()?;
        let folder = std::env::temp_dir().join(format!("skep-bench-authserver-{port}"));
        fs::create_dir_all(&folder)?;
        let config = folder.join("config.yaml");
        let origin = format!("http://127.0.0.1:{port}");
        // JSON is YAML.
        fs::write(&config, endpoint(&origin, provider.address).to_string())?;
        fs::write(folder.join("authserver-config.yaml"), server(&origin, provider.address).to_string())?;
        let replacements = [("config", &*config.display().to_string()), ("port", &port.to_string())];
        let running = program.start(&replacements, port).await?;
        Ok(Self { running, _provider: provider, folder })
    }

    pub(crate) fn megabytes(&self) -> Result<String> {
        Ok(format!("{:.1}", self.running.rss()? as f64 / 1e6))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The virtual server. Its backend is never called.
fn endpoint(origin: &str, provider: SocketAddr) -> serde_json::Value {
    json!({
        "name": "bench", "groupRef": "bench",
        "backends": [{"name": "one", "url": format!("http://{provider}/mcp"), "transport": "streamable-http"}],
        "incomingAuth": {"type": "oidc", "oidc": {
            "issuer": origin, "clientId": "bench", "audience": format!("{origin}/mcp"), "resource": format!("{origin}/mcp"),
            "protectedResourceAllowPrivateIp": true, "jwksAllowPrivateIp": true, "insecureAllowHttp": true,
        }},
        "outgoingAuth": {"source": "inline", "backends": {
            "one": {"type": "upstream_inject", "upstreamInject": {"providerName": "corp"}},
        }},
        "aggregation": {"conflictResolution": "prefix", "conflictResolutionConfig": {"prefixFormat": "{workload}_"}},
    })
}

/// Its authorization server, with keys of its own and everything in memory.
fn server(origin: &str, provider: SocketAddr) -> serde_json::Value {
    json!({
        "schema_version": "v0.1.0", "issuer": origin, "allowed_audiences": [format!("{origin}/mcp")],
        "upstreams": [{"name": "corp", "type": "oauth2", "oauth2_config": {
            "authorization_endpoint": format!("http://{provider}/authorize"),
            "token_endpoint": format!("http://{provider}/token"), "client_id": "us",
            "redirect_uri": format!("{origin}/oauth/callback"),
            "identity_from_token": {"subject_path": "who"},
        }}],
    })
}
