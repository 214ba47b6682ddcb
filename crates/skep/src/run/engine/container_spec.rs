//! The specification of a container.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use skep_config::{RunConfig, run_config::Transport};

use super::{
    Engine,
    mark::{HOST, LOCK},
};
use crate::run::{expansion::expanded, image::Image};

/// The options of an empty folder: as an `emptyDir`, it may contain programs, which Docker forbids by default.
const SCRATCH: &str = "mode=1777,exec";

/// The specification of a server's containers, which run one after the other.
pub(in super::super) struct ContainerSpec {
    pub(in super::super) engine: Arc<Engine>,
    pub(in super::super) image: String,
    pub(super) is_stdio: bool,
    server: String,
    body: Value,
}

impl ContainerSpec {
    /// `place` is the local path of a file of the server. The RunConfig is the one for this machine: its target is the published
    /// port.
    pub(in super::super) fn new(
        engine: Arc<Engine>,
        config: &RunConfig,
        image: &Image,
        place: impl Fn(&str) -> PathBuf,
    ) -> Self {
        let mut body = body(config, image, place);
        body["Labels"] = json!({HOST: engine.mark.host(), LOCK: engine.mark.lock()});
        Self {
            engine,
            image: config.image.clone(),
            is_stdio: config.transport == Transport::Stdio,
            server: config.name.clone(),
            body,
        }
    }

    pub(super) fn body(&self) -> &Value {
        &self.body
    }

    /// A readable name, different for each container.
    pub(super) fn name(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("skep-run-{}-{}-{number}", self.server, std::process::id())
    }
}

/// A container with the permissions of the pod in a cluster. Its input is closed when it is detached.
fn body(config: &RunConfig, image: &Image, place: impl Fn(&str) -> PathBuf) -> Value {
    // With a label that a container may read where SELinux is on.
    let files = image.files.keys().map(|path| format!("{}:{path}:ro,z", place(path).display()));
    let mut host = json!({
        "Binds": config.volumes.iter().cloned().chain(image.binds.iter().cloned()).chain(files).collect::<Vec<_>>(),
        "Tmpfs": image.scratch.iter().map(|path| (path.clone(), SCRATCH)).collect::<BTreeMap<_, _>>(),
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "ReadonlyRootfs": image.read_only,
    });
    let mut body = json!({
        "Image": config.image,
        "Env": config.env_vars.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
        "User": image.user,
        "AttachStdin": true, "AttachStdout": true, "AttachStderr": true,
        "OpenStdin": true, "StdinOnce": true, "Tty": false,
    });
    let command = image.command.iter().map(|word| expanded(word, &config.env_vars)).collect();
    for (field, words) in [("Entrypoint", &command), ("Cmd", &config.cmd_args)] {
        if !words.is_empty() {
            body[field] = json!(words);
        }
    }
    if config.transport != Transport::Stdio {
        let port = format!("{}/tcp", image.port);
        let here = json!([{"HostIp": "127.0.0.1", "HostPort": config.target_port.to_string()}]);
        body["ExposedPorts"] = json!({port.as_str(): {}});
        host["PortBindings"] = json!({port: here});
    }
    body["HostConfig"] = host;
    body
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_container_is_configured_like_the_pod_and_reachable_from_this_machine_only() {
        let config = RunConfig {
            image: "mcp:1".into(),
            transport: Transport::StreamableHttp,
            target_port: 40000,
            cmd_args: vec!["--all".into()],
            env_vars: [("A".into(), "b=c".into())].into(),
            volumes: vec!["/data:/in:ro".into()],
            ..RunConfig::default()
        };
        let image = Image {
            command: vec!["serve".into()],
            user: "1000:1000".into(),
            read_only: true,
            port: 8080,
            binds: vec!["/more:/more".into()],
            scratch: vec!["/tmp".into()],
            files: [("/etc/x/y".to_owned(), Vec::new())].into(),
        };
        let expected = json!({
            "Image": "mcp:1", "Env": ["A=b=c"], "User": "1000:1000", "Entrypoint": ["serve"], "Cmd": ["--all"],
            "AttachStdin": true, "AttachStdout": true, "AttachStderr": true,
            "OpenStdin": true, "StdinOnce": true, "Tty": false,
            "ExposedPorts": {"8080/tcp": {}},
            "HostConfig": {
                "Binds": ["/data:/in:ro", "/more:/more", "/here/etc/x/y:/etc/x/y:ro,z"],
                "Tmpfs": {"/tmp": "mode=1777,exec"},
                "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"], "ReadonlyRootfs": true,
                "PortBindings": {"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "40000"}]},
            },
        });
        let place = |path: &str| Path::new("/here").join(path.trim_start_matches('/'));
        assert_eq!(body(&config, &image, place), expected);
        let stdio = body(&RunConfig { transport: Transport::Stdio, ..config }, &image, place);
        assert_eq!(
            (&stdio["ExposedPorts"], &stdio["HostConfig"]["PortBindings"]),
            (&Value::Null, &Value::Null)
        );
    }
}
