//! Errors when nothing can be run: one sentence with the position, and the exit code 1.

use std::{net::TcpListener, process::Command};

use super::{DEMO, Manifests, Run, server};

/// The error about these manifests, without the name of the file.
fn error(text: &str) -> String {
    let manifests = Manifests::new(text);
    let ended = manifests.ended();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{message}");
    message.trim().replace(manifests.file().to_str().unwrap(), "FILE")
}

/// The error of `skep render` about the same manifests, which it parses in the same way.
fn rendered(text: &str) -> String {
    let manifests = Manifests::new(text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    let ended = command.arg("render").arg("-f").arg(manifests.file()).output().unwrap();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{message}");
    message.trim().replace(manifests.file().to_str().unwrap(), "FILE")
}

/// A document before the one that is wrong, of five lines.
const FIRST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n# a comment\n---\n";

/// A server of three lines after that, with these for the rest.
fn second(rest: &str) -> String {
    format!(
        "{FIRST}apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: {{name: a}}\n{rest}"
    )
}

#[test]
fn an_error_in_a_file_is_reported_with_its_line() {
    for (text, expected) in [
        ("kind: MCPServer\nmetadata:\n  name: a\n bad: b\n".into(), "FILE:4: not valid YAML: "),
        ("kind: MCPServer\nmetadata: {name: a\n".into(), "FILE:2: not valid YAML: unclosed bracket"),
        (second("spec: {image: x, image: y}"), "FILE:9: not valid YAML: duplicate mapping key: image"),
        (
            second("").replace("MCPServer", "MCPSever"),
            "FILE:7: MCPSever a: kind: unknown kind MCPSever in toolhive.stacklok.dev; did you mean MCPServer?",
        ),
        (
            second("").replace("v1beta1", "v1"),
            "FILE:6: MCPServer a: apiVersion: unknown version v1 of MCPServer: use v1alpha1 or v1beta1",
        ),
        (format!("{FIRST}spec: {{}}"), "FILE:6: apiVersion or kind is missing: each document needs both"),
        (
            second("spec:\n  image: x\n  transprot: sse"),
            "FILE:11: MCPServer a: spec.transprot: unknown field; did you mean transport?",
        ),
        (second("sepc: {image: x}"), "FILE:9: MCPServer a: sepc: unknown field; did you mean spec?"),
        (
            second("spec:\n  image: x\n  env:"),
            "FILE:11: MCPServer a: spec.env: is empty: remove it, or write []",
        ),
        ("hello".into(), "FILE:1: apiVersion or kind is missing"),
        (second("spec: {}"), "FILE:9: MCPServer a: spec.image: is required"),
        (
            second("spec:\n  image: x\n  replicas: two"),
            "FILE:11: MCPServer a: spec.replicas: must be an integer, not a string",
        ),
        (
            second("spec:\n  image: x\n  transport: http"),
            "FILE:11: MCPServer a: spec.transport: \"http\" is not one of stdio, streamable-http, sse",
        ),
        (
            second("spec:\n  image: x\n  proxyPort: 70000"),
            "FILE:11: MCPServer a: spec.proxyPort: 70000 is too large: the maximum is 65535",
        ),
        (
            second("spec:\n  image: x\n  env:\n    - name: A\n      value: b\n    - value: c"),
            "FILE:14: MCPServer a: spec.env[1].name: is required",
        ),
        (
            format!("{}---\n{}", second("spec: {image: x}\n"), second("spec: {image: x}").replace(FIRST, "")),
            "FILE:11: MCPServer a: duplicate of the object in line 6: rename one of them",
        ),
    ] {
        let expected = format!("error: {expected}");
        for message in [error(&text), rendered(&text)] {
            assert!(message.starts_with(&expected), "{message}\ninstead of\n{expected}\nof\n{text}");
        }
    }
}

#[test]
fn a_dangling_reference_is_reported_with_its_line() {
    for (spec, expected) in [
        (
            "  oidcConfigRef: {name: corp, audience: crm}",
            "FILE:11: MCPServer a: spec.oidcConfigRef: MCPOIDCConfig corp does not exist in this namespace: create it",
        ),
        (
            "  toolConfigRef: {name: few}",
            "FILE:11: MCPServer a: spec.toolConfigRef: MCPToolConfig few does not exist in this namespace",
        ),
        (
            "  rateLimiting: {shared: {maxTokens: 1, refillPeriod: 1m}}",
            "FILE:11: MCPServer a: spec.rateLimiting: ",
        ),
        (
            "  secrets: [{name: token, key: api, targetEnvName: API_TOKEN}]",
            "FILE:11: MCPServer a: spec.secrets: Secret token not found in the file: add it",
        ),
    ] {
        let text = server("a", DEMO, spec).replace("image:", "# A comment.\n  image:");
        let message = error(&text);
        assert!(message.starts_with(&format!("error: {expected}")), "{message}\nof\n{text}");
    }
}

#[test]
fn a_missing_file_and_a_file_without_servers_are_reported() {
    assert_eq!(
        error("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        "error: FILE: nothing to run: it has no MCPServer, MCPRemoteProxy or VirtualMCPServer"
    );
    let manifests = Manifests::new("");
    std::fs::remove_file(manifests.file()).unwrap();
    let ended = manifests.ended();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(message.starts_with("error: cannot read ") && message.contains("No such file"), "{message}");
}

#[test]
fn the_error_for_a_server_without_command_and_engine_names_what_to_add() {
    let none =
        "apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: {name: a}\nspec: {image: x}\n";
    assert_eq!(
        error(none),
        "error: FILE:1: MCPServer a: it has no command, and there is no container engine for its image: add the \
         annotation skep.dev/local-command, for example \"npx -y @modelcontextprotocol/server-everything stdio\", or \
         start Docker or Podman (looked for its socket at /nowhere/engine.sock)"
    );
    assert_eq!(
        error(&server("a", "\"echo 'x\"", "")),
        "error: FILE:7: MCPServer a: metadata.annotations[skep.dev/local-command]: a quote is not closed: write it as in \
         a shell"
    );
    let missing = error(&server("a", "no-such-npx", ""));
    assert!(
        missing.starts_with("error: FILE:2: MCPServer a: program no-such-npx not found: install it"),
        "{missing}"
    );
}

#[test]
fn a_missing_key_of_a_secret_is_reported_with_its_field() {
    let secrets = "  secrets: [{name: token, key: api, targetEnvName: API_TOKEN}]";
    let other = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {other: hunter2}";
    let missing = error(&server("a", DEMO, &format!("{secrets}{other}")));
    assert_eq!(missing, "error: FILE:10: MCPServer a: spec.secrets: Secret token has no key api: add it");
}

#[test]
fn settings_that_work_only_in_a_pod_are_reported() {
    let headers = "  telemetryConfigRef: {name: otel}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPTelemetryConfig
metadata: {name: otel}
spec:
  openTelemetry:
    enabled: true
    endpoint: otel:4318
    tracing: {enabled: true}
    sensitiveHeaders: [{name: x-key, secretKeyRef: {name: otel, key: key}}]
---
apiVersion: v1
kind: Secret
metadata: {name: otel}
stringData: {key: hunter2}";
    assert_eq!(
        error(&server("a", DEMO, headers)),
        "error: FILE:2: MCPServer a: the secret in the proxy's variable TOOLHIVE_OTEL_HEADER_X_KEY works only in a cluster, \
         for now"
    );
}

#[test]
fn an_occupied_port_is_reported_if_the_manifest_sets_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let message = error(&server("a", DEMO, &format!("  proxyPort: {port}")));
    let expected =
        format!("error: FILE:10: MCPServer a: spec.proxyPort: cannot listen on 127.0.0.1:{port}: ");
    assert!(
        message.starts_with(&expected) && message.ends_with("choose another, or leave it out"),
        "{message}"
    );
}

#[test]
fn an_error_in_a_changed_file_is_reported_and_running_servers_are_not_changed() {
    let run = Run::start(&server("demo", DEMO, ""));
    let client = run.client("demo");
    let file = run.manifests.file().display().to_string();
    run.manifests.write(&server("demo", DEMO, "  transprot: sse"));
    run.expect_output(&format!(
        "{file}:10: MCPServer demo: spec.transprot: unknown field; did you mean transport?; running servers are not changed\n"
    ));
    assert_eq!(client.tools().len(), 3);
    run.manifests.write(&server("demo", "no-such-program", ""));
    run.expect_output(
        "program no-such-program not found: install it, or change the annotation skep.dev/local-command; the running \
         server is not changed",
    );
    assert_eq!(client.tools().len(), 3);
    run.manifests.write("");
    run.expect_output(
        "nothing to run: it has no MCPServer, MCPRemoteProxy or VirtualMCPServer; running servers are not changed",
    );
    assert_eq!(client.tools().len(), 3);
}

#[test]
fn a_file_with_many_mistakes_is_checked_quickly() {
    let servers = (0..1000)
        .map(|number| server(&format!("s{number}"), DEMO, "  oidcConfigRef: {name: a, audience: b}"));
    let text: String = servers.collect();
    let manifests = Manifests::new(&text);
    // Its processor time is the same on a busy machine.
    let run = [env!("CARGO_BIN_EXE_skep"), "render", "-f"];
    let timed = ["-c", "TIMEFORMAT=%U; time \"$@\"", "bash"];
    let ended = Command::new("bash").args(timed).args(run).arg(manifests.file()).output().unwrap();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(message.matches("MCPOIDCConfig a does not exist").count(), 1000, "{message}");
    let seconds: f64 = message.lines().last().unwrap().parse().unwrap();
    assert!(seconds < 15.0, "{seconds} s");
}

#[test]
fn without_a_file_and_a_package_the_error_shows_the_usage() {
    for (args, expected) in [
        (&["run"][..], "error: nothing to run: name a file, as in skep run -f server.yaml"),
        (&["run", "server.yaml"], "error: \"server.yaml\" is a file: write skep run -f server.yaml"),
        (
            &["run", "--env", "A=1", "-f", "server.yaml"],
            "error: arguments after -- and settings such as --env or --port are for one package or image, and there are 0",
        ),
    ] {
        let ended = Command::new(env!("CARGO_BIN_EXE_skep")).args(args).output().unwrap();
        let message = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1));
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn every_mistake_of_a_file_is_reported_at_once_with_its_line() {
    let text = "apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata: {name: a}
spec:
  image: x
  transprot: sse
  replicas: two
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPGroup
metadata: {name: b}
spec: {descripton: c}
";
    let expected = "error: FILE:6: MCPServer a: spec.transprot: unknown field; did you mean transport?
FILE:7: MCPServer a: spec.replicas: must be an integer, not a string
FILE:12: MCPGroup b: spec.descripton: unknown field; did you mean description?";
    let mut lines: Vec<String> = error(text).lines().map(ToOwned::to_owned).collect();
    let first = lines[0].trim_start_matches("error: ").to_owned();
    lines[0] = first;
    lines.sort();
    let mut expected_lines: Vec<&str> = expected.trim_start_matches("error: ").lines().collect();
    expected_lines.sort_unstable();
    assert_eq!(lines, expected_lines);
}

#[test]
fn every_mistake_in_what_the_objects_mean_is_reported_at_once_with_its_line() {
    let text = "apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata: {name: a}
spec:
  image: x
  permissionProfile:
    type: builtin
    name: wide
  oidcConfigRef: {name: corp, audience: crm}
  rateLimiting:
    shared:
      maxTokens: 1
      refillPeriod: 0s
  authzConfig:
    type: inline
    inline:
      policies:
        - permit
        - permit(principal, action, resource);
        - forbid
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPRemoteProxy
metadata: {name: b}
spec:
  remoteUrl: https://localhost/mcp
  toolConfigRef: {name: few}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: VirtualMCPServer
metadata: {name: c}
spec:
  groupRef: {name: none}
  incomingAuth:
    type: anonymous
    authzConfig:
      type: inline
      inline:
        policies:
          - permit
  config:
    passthroughHeaders: [Host]
    aggregation:
      conflictResolution: priority
";
    let policy =
        |word: &str| format!("line 1, column 7, after `{word}`: unexpected end of input, expected `(`");
    let expected = [
        (
            "8: MCPServer a: ",
            "permissionProfile.name",
            "wide is not a built-in profile: use none or network".into(),
        ),
        (
            "9: MCPServer a: ",
            "oidcConfigRef",
            "MCPOIDCConfig corp does not exist in this namespace: create it".into(),
        ),
        (
            "10: MCPServer a: ",
            "rateLimiting",
            "calls are counted in Redis: set sessionStorage with provider redis".into(),
        ),
        (
            "13: MCPServer a: ",
            "rateLimiting.shared.refillPeriod",
            "must be a millisecond or more, for example 1m".into(),
        ),
        ("18: MCPServer a: ", "authzConfig.inline.policies[0]", policy("permit")),
        ("20: MCPServer a: ", "authzConfig.inline.policies[2]", policy("forbid")),
        (
            "26: MCPRemoteProxy b: ",
            "remoteUrl",
            "\"localhost\" is the node, the cluster's own API or a metadata service: use another server"
                .into(),
        ),
        (
            "27: MCPRemoteProxy b: ",
            "toolConfigRef",
            "MCPToolConfig few does not exist in this namespace: create it".into(),
        ),
        (
            "33: VirtualMCPServer c: ",
            "groupRef",
            "MCPGroup none does not exist in this namespace: create it".into(),
        ),
        ("40: VirtualMCPServer c: ", "incomingAuth.authzConfig.inline.policies[0]", policy("permit")),
        ("42: VirtualMCPServer c: ", "config.passthroughHeaders[0]", "\"Host\" cannot be passed on".into()),
        (
            "43: VirtualMCPServer c: ",
            "config.aggregation.conflictResolutionConfig.priorityOrder",
            "is required".into(),
        ),
    ];
    // `skep run` names fields from the root of the object.
    for (message, root) in [(error(text), "spec."), (rendered(text), "")] {
        let message = message.split_once("error: ").unwrap().1;
        let mut lines: Vec<&str> = message.lines().collect();
        lines.sort_unstable();
        let mut expected: Vec<String> = expected
            .iter()
            .map(|(place, field, what)| format!("FILE:{place}{root}{field}: {what}"))
            .collect();
        expected.sort_unstable();
        assert_eq!(lines, expected);
    }
}
