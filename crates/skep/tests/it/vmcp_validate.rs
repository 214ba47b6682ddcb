//! `skep vmcp validate`, for files that the operator writes.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// The files of a virtual server: its configuration, and that of its authorization server if it has one.
pub(crate) struct ConfigFiles {
    config: String,
    authorization_server: Option<String>,
}

impl ConfigFiles {
    /// The files in the ConfigMaps of virtual servers among these objects.
    pub(crate) fn of(objects: &str) -> Vec<Self> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(objects).unwrap();
        let files = |object: &Value| {
            let is_virtual = object["metadata"]["name"].as_str()?.ends_with("-vmcp-config");
            let data = &object["data"];
            let config = data["config.yaml"].as_str().filter(|_| is_virtual && object["kind"] == "ConfigMap");
            let authorization_server = data["authserver-config.yaml"].as_str().map(without_secrets);
            Some(Self { config: config?.to_owned(), authorization_server })
        };
        objects.iter().filter_map(files).collect()
    }

    pub(crate) fn validate(&self) -> Result<String, String> {
        let server = self.authorization_server.as_deref().map(|server| ("authserver-config.yaml", server));
        validate_files(&[("config.yaml", &*self.config)].into_iter().chain(server).collect::<Vec<_>>())
    }
}

/// The file of an authorization server without the secrets that its pod has.
fn without_secrets(file: &str) -> String {
    let mut config: Value = serde_saphyr::from_str(file).unwrap();
    let fields = config.as_object_mut().unwrap();
    fields.retain(|name, _| !["signing_key_config", "hmac_secret_files"].contains(&name.as_str()));
    for upstream in fields["upstreams"].as_array_mut().unwrap() {
        for settings in upstream.as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
            settings.remove("client_secret_env_var");
        }
    }
    config.to_string()
}

/// Its summary of a configuration, or what it reports about it.
fn validate(config: &str) -> Result<String, String> {
    validate_files(&[("config.yaml", config)])
}

/// A folder with these files, which is removed when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("skep-validate-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, content) in files {
            fs::write(folder.join(name), content).unwrap();
        }
        Self(folder)
    }

    /// Its configuration.
    fn config(&self) -> PathBuf {
        self.0.join("config.yaml")
    }

    /// An error without the name of the folder.
    fn error(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.display()), "")
    }
}

/// Validates a configuration with the files beside it.
fn validate_files(files: &[(&str, &str)]) -> Result<String, String> {
    let folder = Folder::new(files);
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    let output = command.args(["vmcp", "validate", "--config"]).arg(folder.config()).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(folder.error(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// Serves a configuration until it is known whether a server accepts it.
fn serve(config: &str) -> Result<(), String> {
    let folder = Folder::new(&[("config.yaml", config)]);
    serve_file(&folder.config()).map_err(|error| folder.error(&error))
}

fn serve_file(config: &Path) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    command.args(["vmcp", "serve", "--port", "0", "--config"]).arg(config);
    let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(server.stderr.take().unwrap());
    let (sender, lines) = std::sync::mpsc::channel();
    thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut errors = String::new();
    let is_serving = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains("\"serving\"") => break true,
            Ok(line) => errors.extend([&line, "\n"]),
            Err(_) => break false,
        }
    };
    server.kill().ok();
    let status = server.wait().unwrap();
    if is_serving {
        return Ok(());
    }
    assert!(status.code().is_some_and(|code| code != 0), "neither serves nor fails: {errors}");
    Err(errors)
}

#[test]
fn every_mistake_of_both_files_is_reported_at_once_with_its_line() {
    let config = "name: team
groupRef: team
backends:
  - {name: files, url: 'http://127.0.0.1:8081/mcp', transport: streamable-http}
incomingAuth: {type: anonymous}
outgoingAuth: {source: inline}
aggregation:
  conflictResolution: priority
sessionStorage: {provider: redis, address: 'redis:6379'}
rateLimiting:
  shared:
    maxTokens: 1
    refillPeriod: 0s
operational:
  timeouts:
    defualt: 10s
compositeTools:
  - name: report
    description: Makes a report
    steps:
      - id: a
        tool: files_read
        dependsOn: [never]
";
    let server = "issuer: http://login.example
token_lifespans:
  wild: 1h
";
    let errors = validate_files(&[("config.yaml", config), ("authserver-config.yaml", server)]).unwrap_err();
    let expected = "error: invalid configuration:
config.yaml:16: operational.timeouts.defualt: is not a known key: correct it, or remove it
config.yaml:7: aggregation.conflictResolutionConfig: is required
config.yaml:13: rateLimiting.shared.refillPeriod: must be a millisecond or more, for example 1m
config.yaml:23: compositeTools[0].steps[0].dependsOn[0]: there is no step \"never\"
authserver-config.yaml:3: token_lifespans.wild: is not known: check how it is spelled
";
    assert_eq!(errors, expected);
}

#[test]
fn the_summary_has_what_decides_about_callers_and_backends() {
    let config = "name: team\ngroupRef: team\nbackends: [{name: a, url: \"http://127.0.0.1:1/mcp\", transport: streamable-http}]\n\
        incomingAuth: {type: anonymous}\n\
        outgoingAuth: {source: inline, backends: {a: {type: unauthenticated}}}\n\
        aggregation: {conflictResolution: priority, conflictResolutionConfig: {priorityOrder: [a]}}\n\
        compositeTools: [{name: twice, description: d, steps: [{id: s, tool: echo}]}]\n";
    let expected = "name: team\ngroup: team\nbackends: 1\nincoming: anonymous\noutgoing: inline, 1 backend with a strategy\n\
        conflict resolution: priority\ncomposite tools: 1\n";
    assert_eq!(validate(config).as_deref(), Ok(expected));
}

#[test]
fn policies_that_cannot_be_enforced_are_mistakes_of_their_fields() {
    let authz = "{type: cedar, policies: [\"permit(principal, action, resource);\", \"permit(\"], entitiesJson: \"{}\"}";
    let config = format!(
        "name: team\ngroupRef: team\nincomingAuth: {{type: anonymous, authz: {authz}}}\noutgoingAuth: {{source: inline}}\n\
         aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\nbackends: []\n"
    );
    let errors = validate(&config).unwrap_err();
    for field in ["incomingAuth.authz.policies[1]: ", "incomingAuth.authz.entitiesJson: "] {
        assert!(errors.contains(field), "{errors}");
    }
    assert!(!errors.contains("policies[0]"), "{errors}");
}

/// Configurations of which each has a mistake that the schema does not show, with the error.
const REJECTED: [(&str, &str); 6] = [
    (
        "outgoingAuth: {source: inline, backends: {a: {type: obo, obo: {tokenUrl: \"http://login.example/t\", audience: a}}}}",
        "tokenUrl: must be https",
    ),
    (
        "outgoingAuth: {source: inline, backends: {a: {type: upstream_inject, upstreamInject: {providerName: corp}}}}",
        "needs an authorization server",
    ),
    (
        "outgoingAuth: {source: inline}\noptimizer: {embeddingService: \"not a url\"}",
        "optimizer.embeddingService",
    ),
    (
        "outgoingAuth: {source: inline}\ntelemetry: {endpoint: \"http://127.0.0.1:1\", tracingEnabled: true}",
        "telemetry: serviceName is missing",
    ),
    (
        "outgoingAuth: {source: inline}\nsessionStorage: {provider: redis, address: \"redis:6379\", keyPrefix: sessions}",
        "must end with a colon",
    ),
    ("outgoingAuth: {source: inline}\naggregation: {conflictResolution: first}", "aggregation"),
];

/// Configurations without a mistake.
const ACCEPTED: [&str; 4] = [
    "outgoingAuth: {source: inline}",
    "outgoingAuth: {source: inline, backends: {a: {type: unauthenticated}}}\ncodeMode: {enabled: true}",
    "outgoingAuth: {source: inline}\noptimizer: {embeddingService: \"http://127.0.0.1:1/\"}\naudit: {enabled: true}",
    "outgoingAuth: {source: inline}\ntelemetry: {serviceName: team, endpoint: \"http://127.0.0.1:1\", tracingEnabled: true}",
];

fn configuration(more: &str) -> String {
    let aggregation = if more.contains("aggregation:") {
        ""
    } else {
        "aggregation: {conflictResolution: prefix, conflictResolutionConfig: {prefixFormat: \"{workload}_\"}}\n"
    };
    format!(
        "name: team\ngroupRef: team\nincomingAuth: {{type: anonymous}}\n\
         backends: [{{name: a, url: \"http://127.0.0.1:1/mcp\", transport: streamable-http}}]\n{more}\n{aggregation}"
    )
}

#[test]
fn validate_rejects_what_serve_rejects_with_the_same_error() {
    for (more, expected) in REJECTED {
        let config = configuration(more);
        let error = validate(&config).expect_err(more);
        assert!(error.contains(expected), "{more}: {error}");
        assert_eq!(serve(&config), Err(error), "{more}");
    }
}

#[test]
fn validate_accepts_what_serve_accepts() {
    for more in ACCEPTED {
        let config = configuration(more);
        validate(&config).unwrap();
        serve(&config).unwrap();
    }
}

#[test]
fn validate_needs_no_secret_cluster_or_log_file() {
    let exchange =
        "{type: obo, obo: {tokenUrl: \"https://login.example/t\", audience: a, clientSecretEnv: SKEP_UNSET}}";
    for more in [
        &*format!("outgoingAuth: {{source: inline, backends: {{a: {exchange}}}}}"),
        "outgoingAuth: {source: discovered}",
        "outgoingAuth: {source: inline}\naudit: {enabled: true, logFile: /no/such/folder/audit.log}",
    ] {
        let config = configuration(more);
        validate(&config).unwrap();
        serve(&config).expect_err(more);
    }
}
