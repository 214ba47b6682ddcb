//! `skep vmcp validate`, for files that the operator writes.

use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

/// The configurations of virtual servers in the ConfigMaps among these objects.
pub(crate) fn config_files(objects: &str) -> Vec<String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(objects).unwrap();
    let file = |object: &Value| {
        let is_virtual = object["metadata"]["name"].as_str()?.ends_with("-vmcp-config");
        let file =
            object["data"]["config.yaml"].as_str().filter(|_| is_virtual && object["kind"] == "ConfigMap");
        file.map(str::to_owned)
    };
    objects.iter().filter_map(file).collect()
}

/// Its summary of a configuration, or what it reports about it.
pub(crate) fn validate(config: &str) -> Result<String, String> {
    validate_files(&[("config.yaml", config)])
}

/// The same with further files beside it, whose folder is left out of errors.
fn validate_files(files: &[(&str, &str)]) -> Result<String, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("skep-validate-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (name, content) in files {
        fs::write(folder.join(name), content).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    let file = folder.join("config.yaml");
    let output = command.args(["vmcp", "validate", "--config"]).arg(&file).output().unwrap();
    fs::remove_dir_all(&folder).ok();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(errors.replace(&format!("{}/", folder.display()), ""))
        }
    }
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
