//! What is measured: proxies, each with its settings and its command line.

use std::{fs, net::SocketAddr, path::PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use skep_bench_harness::{Program, Running, free_port};
use skep_testkit::IdentityProvider;

/// How many policies and entities the checks have.
const POLICIES: usize = 100;
const ENTITIES: usize = 1_000;

/// A proxy to measure.
pub(crate) struct Contender {
    pub(crate) program: Program,
    settings: Settings,
    /// What its callers authenticate with.
    pub(crate) authorization: Option<String>,
    /// How many watch its calls.
    pub(crate) watchers: usize,
}

enum Settings {
    /// A RunConfig with these middlewares.
    RunConfig(Value),
    /// The same, with the server as a remote one.
    Remote(Value),
    Nginx,
}

impl Contender {
    /// A proxy with what the operator writes for a server with nothing special.
    pub(crate) fn plain(name: &str, command: &str) -> Self {
        let settings = Settings::RunConfig(plain_chain());
        Self {
            program: Program { name: name.into(), command: command.into() },
            settings,
            authorization: None,
            watchers: 0,
        }
    }

    /// The same in front of a remote server: its connections are those of hyper-util's pool.
    pub(crate) fn remote(name: &str, command: &str) -> Self {
        Self { settings: Settings::Remote(plain_chain()), ..Self::plain(name, command) }
    }

    /// The same with tokens, policies and a tool filter.
    pub(crate) fn checked(name: &str, command: &str, provider: &IdentityProvider) -> Self {
        let token = provider.token(json!({"groups": ["g42", "staff"]}));
        let tools: Vec<_> = (0..20).map(|number| format!("tool-{number}")).chain(["ask".into()]).collect();
        let filter = json!({"filter_tools": tools});
        let chain = json!([
            {"type": "bodylimit", "parameters": null},
            {"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}},
            {"type": "tool-filter", "parameters": filter},
            {"type": "tool-call-filter", "parameters": filter},
            {"type": "mcp-parser", "parameters": null},
            {"type": "authorization", "parameters": {"config_data": policies()}},
            {"type": "recovery", "parameters": null},
        ]);
        Self {
            program: Program { name: name.into(), command: command.into() },
            settings: Settings::RunConfig(chain),
            authorization: Some(format!("Bearer {token}")),
            watchers: 0,
        }
    }

    /// A plain proxy that records calls, with this many who watch them.
    pub(crate) fn recording(watchers: usize, provider: &IdentityProvider) -> Result<Self> {
        let program = std::env::current_exe()?.display().to_string();
        let command = format!("{program} --proxy {{config}} --issuer {}", provider.issuer);
        let name = if watchers == 0 { "recorded".to_owned() } else { format!("{watchers} watch") };
        Ok(Self { watchers, ..Self::plain(&name, &command) })
    }

    /// nginx as a bare reverse proxy.
    pub(crate) fn nginx() -> Self {
        let command = "nginx -e stderr -c {config}".into();
        let program = Program { name: "nginx".into(), command };
        Self { program, settings: Settings::Nginx, authorization: None, watchers: 0 }
    }

    /// Starts it in front of this server. Returns its configuration file as well, whose folder is to be removed.
    pub(crate) async fn start(&self, server: SocketAddr) -> Result<(Running, PathBuf)> {
        let port = free_port()?;
        let config = self.config_file(server, port)?;
        let (file, target) = (config.display().to_string(), server.port().to_string());
        let replacements = [("config", &*file), ("target", &target), ("port", &port.to_string())];
        Ok((self.program.start(&replacements, port).await?, config))
    }

    /// Writes its settings, in front of this server and on this port.
    fn config_file(&self, server: SocketAddr, port: u16) -> Result<PathBuf> {
        let folder = std::env::temp_dir().join(format!("skep-bench-{port}"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let run_config = |chain: &Value| {
            json!({
                "schema_version": "v0.1.0", "name": "bench", "transport": "streamable-http", "host": "127.0.0.1",
                "port": port, "target_host": "127.0.0.1", "target_port": server.port(), "middleware_configs": chain,
            })
        };
        let text = match &self.settings {
            Settings::RunConfig(chain) => run_config(chain).to_string(),
            Settings::Remote(chain) => {
                let mut config = run_config(chain);
                config["remote_url"] = format!("http://{server}/mcp").into();
                config.to_string()
            }
            Settings::Nginx => nginx(&folder.display().to_string(), server, port),
        };
        let path = folder.join("config");
        fs::write(&path, text)?;
        Ok(path)
    }
}

fn plain_chain() -> Value {
    let types = ["bodylimit", "auth", "mcp-parser", "recovery"];
    json!(types.map(|type_| json!({"type": type_, "parameters": null})))
}

/// Policies of which one permits the call, and entities of which few concern it.
fn policies() -> Value {
    let policy = |number: usize| {
        format!(
            "permit(principal in THVGroup::\"g{number}\", action == Action::\"call_tool\", resource) \
             when {{ resource.name == \"ask\" && context.claim_sub != \"stranger-{number}\" }};"
        )
    };
    let policies: Vec<_> = (0..POLICIES).map(policy).collect();
    let entities: Vec<_> = (0..ENTITIES)
        .map(|number| {
            let parents = json!([{"type": "THVGroup", "id": format!("g{}", number / 10)}]);
            let parents = if number < 10 { json!([]) } else { parents };
            json!({"uid": {"type": "THVGroup", "id": format!("g{number}")}, "attrs": {"n": number}, "parents": parents})
        })
        .collect();
    let cedar = json!({"policies": policies, "entities_json": json!(entities).to_string()});
    json!({"version": "1.0", "type": "cedarv1", "cedar": cedar})
}

/// Two workers, connections that are kept on both sides, and the `Host` that the server expects.
fn nginx(folder: &str, server: SocketAddr, port: u16) -> String {
    // As another user, its workers could not write here.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let kept = "keepalive_requests 1000000000;";
    format!(
        "daemon off;\n{user}\nworker_processes 2;\npid {folder}/pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n  access_log off;\n  {kept}\n\
         client_body_temp_path {folder}/body;\n  proxy_temp_path {folder}/proxy;\n  fastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi;\n  scgi_temp_path {folder}/scgi;\n\
         upstream mcp {{ server {server}; keepalive 1024; {kept} }}\n\
         server {{\n    listen 127.0.0.1:{port};\n\
         location / {{\n      proxy_pass http://mcp;\n      proxy_http_version 1.1;\n\
         proxy_set_header Connection \"\";\n      proxy_set_header Host {server};\n      proxy_buffering off;\n    }}\n  }}\n}}\n"
    )
}
