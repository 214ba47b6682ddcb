//! `skep explain` and `skep test`, as processes.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;
use skep_testkit::{IdentityProvider, repository};

fn skep(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_skep")).env_clear().args(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn example() -> String {
    let path = repository("examples/cedar.yaml");
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_denied_call_is_explained_by_the_middleware_and_the_policy() {
    let file = example();
    let (code, text, _) = skep(&["explain", "-f", &file, "--claims", r#"{"sub": "bob"}"#, "--tool", "add"]);
    assert_eq!(code, Some(3), "{text}");
    let expected = "MCPServer default/calculator
  auth           passes
                   the caller is given, and no token is verified
  authorization  rejects it with 403: Unauthorized
                   no policy permits it
rejected by authorization
";
    assert_eq!(text, expected);
    let engineer = r#"{"sub": "alice", "groups": ["engineers"]}"#;
    let (code, text, _) =
        skep(&["explain", "-f", &file, "--claims", engineer, "--tool", "add", "--arguments", r#"{"a": 1}"#]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(r#"policies[1]: permit(principal in THVGroup::"engineers""#), "{text}");
    assert!(text.ends_with("allowed; it is sent to the server calculator by stdio\n"), "{text}");
    let words = [
        "explain",
        "-f",
        &file,
        "--claims",
        engineer,
        "--tool",
        "add",
        "--arguments",
        r#"{"a": 2000}"#,
        "-o",
        "json",
    ];
    let (code, text, _) = skep(&words);
    assert_eq!(code, Some(3), "{text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["allowed"], &json["middlewares"][1]["outcome"]), (&false.into(), &"rejected".into()));
    assert!(
        json["middlewares"][1]["details"][0].as_str().unwrap().starts_with("policies[2]: forbid("),
        "{json}"
    );
    let (code, text, _) = skep(&["explain", "-f", &file, "--tool", "echo"]);
    assert_eq!((code, text.contains("auth  rejects it with 401")), (Some(3), true), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_verified_with_the_keys_of_its_issuer_and_never_printed() {
    let provider = IdentityProvider::start().await;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("token");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("server.yaml");
    let issuer = &provider.issuer;
    fs::write(
        &file,
        format!(
            r#"
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPOIDCConfig
metadata: {{name: corp}}
spec:
  type: inline
  inline: {{issuer: "{issuer}", insecureAllowHTTP: true, jwksAllowPrivateIP: true}}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata: {{name: files}}
spec:
  image: example.com/files
  transport: stdio
  oidcConfigRef: {{name: corp, audience: crm}}
  authzConfig:
    type: inline
    inline:
      policies:
        - '@id("alice may read") permit(principal == Client::"alice", action, resource == Tool::"read");'
"#
        ),
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let explained = |token: &str, tool: &str| {
        let (code, text, error) = skep(&["explain", "-f", file, "--token", token, "--tool", tool]);
        assert!(!text.contains(token) && !error.contains(token), "{text}{error}");
        (code, format!("{text}{error}"))
    };
    let token = provider.token(serde_json::json!({}));
    let (code, text) = explained(&token, "read");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("  alice may read (policies[0]): "), "{text}");
    let (code, text) = explained(&token, "write");
    assert!(code == Some(3) && text.ends_with("rejected by authorization\n"), "{text}");
    for fault in [serde_json::json!({"exp": 1_000_000_000}), serde_json::json!({"aud": "other"})] {
        let (code, text) = explained(&provider.token(fault), "read");
        assert!(code == Some(3) && text.contains("auth  rejects it with 401"), "{text}");
        assert!(text.ends_with("rejected by auth\n"), "{text}");
    }
    // A command line is seen by other users of the machine; a variable is not.
    let output = Command::new(env!("CARGO_BIN_EXE_skep"))
        .env_clear()
        .env("SKEP_TOKEN", &token)
        .args(["explain", "-f", file, "--tool", "read"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_request_or_a_server_that_is_not_clear_is_an_error() {
    let file = example();
    let (code, _, error) = skep(&["explain", "-f", &file, "--server", "other", "--tool", "a"]);
    assert_eq!(code, Some(1));
    assert_eq!(error, "error: there is no server other; there are MCPServer default/calculator\n");
    let (code, _, error) = skep(&["explain", "-f", &file, "--claims", "bob", "--tool", "a"]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("error: --claims is no object of JSON"), "{error}");
    assert_eq!(skep(&["explain", "-f", &file]).0, Some(2));
}

fn tests_file(name: &str, tests: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tests.yaml");
    fs::write(&file, format!("manifests: [{:?}]\ntests:\n{tests}", example())).unwrap();
    file
}

#[test]
fn expectations_are_checked_and_failures_have_their_reason() {
    let file = tests_file(
        "policy-tests",
        r"
- {name: all may echo, caller: {sub: bob}, tool: echo, expect: allowed}
- {name: engineers may add, caller: {sub: alice, groups: [engineers]}, tool: add, arguments: {a: 1}, expect: allowed}
- {name: not that much, caller: {sub: alice, groups: [engineers]}, tool: add, arguments: {a: 2000}, expect: denied}
- {name: strangers may nothing, tool: echo, expect: denied}
- {name: what bob sees, caller: {sub: bob}, tools: [echo, add, time], expect: [echo]}
",
    );
    let (code, text, error) = skep(&["test", "-f", file.to_str().unwrap()]);
    assert_eq!((code, text.lines().last()), (Some(0), Some("5 tests passed")), "{text}{error}");

    let file = tests_file(
        "failing-policy-tests",
        r"
- {name: wrong, caller: {sub: bob}, tool: add, expect: allowed}
- {name: also wrong, caller: {sub: bob}, tools: [echo, add], expect: [add]}
",
    );
    let (code, text, error) = skep(&["test", "-f", file.to_str().unwrap()]);
    assert_eq!((code, error.as_str()), (Some(1), "error: 2 of 2 tests failed\n"));
    let expected = format!(
        "FAILED  {0}:4: wrong: authorization rejects it with 403: Unauthorized (no policy permits it)
FAILED  {0}:5: also wrong: listed are [\"echo\"], and not [\"add\"]
",
        file.display()
    );
    assert_eq!(text, expected);
    let (code, text, _) = skep(&["test", "-o", "json", "-f", file.to_str().unwrap()]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((code, lines.len(), &lines[1]["name"]), (Some(1), 2, &"also wrong".into()));
    let reason = "listed are [\"echo\"], and not [\"add\"]";
    assert_eq!((&lines[1]["passed"], &lines[1]["reason"]), (&false.into(), &reason.into()));
    assert_eq!(lines[1]["line"], 5);
    for (test, mistake) in [
        (
            "{name: a, tool: add, expect: allowed, expects: 1}",
            "tests[0] (a): expects: there is no such field",
        ),
        (
            "{name: a, tool: add}",
            "tests[0] (a): expect: is missing: it must be allowed, denied, or a list of tools",
        ),
        (
            "{name: a, tool: add, expect: maybe}",
            "tests[0] (a): expect: must be allowed, denied, or a list of tools",
        ),
        ("{tool: add, expect: allowed}", "tests[0]: name: is missing: it must be a string"),
        ("{name: a, tool: 1, expect: allowed}", "tests[0] (a): tool: must be a string"),
    ] {
        let file = tests_file("mistaken-policy-tests", &format!("- {test}\n"));
        let (code, _, error) = skep(&["test", "-f", file.to_str().unwrap()]);
        assert_eq!((code, error), (Some(1), format!("error: {}: {mistake}\n", file.display())));
    }
}

#[test]
fn a_junit_report_has_every_test_with_its_line() {
    let file = tests_file(
        "junit-policy-tests",
        r#"- {name: fine, caller: {sub: bob}, tool: echo, expect: allowed}
- {name: "wrong <&\"\x1b", caller: {sub: bob}, tools: [echo, add], expect: [add]}
"#,
    );
    let (code, text, error) = skep(&["test", "-o", "junit", "-f", file.to_str().unwrap()]);
    assert_eq!((code, error.as_str()), (Some(1), "error: 1 of 2 tests failed\n"));
    let name = "wrong &lt;&amp;&quot;\u{fffd}";
    let expected = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="skep test" tests="2" failures="1">
  <testcase classname="{0}" name="fine" file="{0}" line="3"></testcase>
  <testcase classname="{0}" name="{name}" file="{0}" line="4"><failure message="listed are [&quot;echo&quot;], and not [&quot;add&quot;]"/></testcase>
</testsuite>
"#,
        file.display()
    );
    assert_eq!(text, expected);
}

/// A virtual server in front of two servers, as `kubectl get -o yaml` exports them.
const VIRTUAL: &str = r#"
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPGroup
metadata: {name: team}
spec: {}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata: {name: docs}
spec: {image: example.com/docs, groupRef: {name: team}, externalAuthConfigRef: {name: docs-key}}
status:
  url: http://mcp-docs-proxy.default.svc.cluster.local:8080/mcp
  server: {toolCount: 1, tools: [{name: fetch, digest: a, hints: [readOnly]}]}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata: {name: git}
spec: {image: example.com/git, groupRef: {name: team}}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPExternalAuthConfig
metadata: {name: docs-key}
spec:
  type: headerInjection
  headerInjection: {headerName: X-Api-Key, valueSecretRef: {name: docs-key, key: value}}
---
apiVersion: v1
kind: Secret
metadata: {name: docs-key}
stringData: {value: very-secret}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: VirtualMCPServer
metadata: {name: all}
spec:
  groupRef: {name: team}
  incomingAuth:
    type: anonymous
    authzConfig:
      type: inline
      inline:
        policies:
          - 'permit(principal, action == Action::"call_tool", resource) when { resource has readOnlyHint && resource.readOnlyHint };'
          - 'permit(principal, action == Action::"call_tool", resource == Tool::"git_log");'
  config:
    aggregation: {conflictResolution: prefix, conflictResolutionConfig: {prefixFormat: "{workload}_"}}
"#;

#[test]
fn a_call_of_a_virtual_server_is_explained_with_the_backend_that_gets_it_and_without_secrets() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("virtual");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("all.yaml");
    fs::write(&file, VIRTUAL).unwrap();
    let file = file.to_str().unwrap();
    let explained = |tool: &str, more: &[&str]| {
        let args = [&["explain", "-f", file, "--server", "all", "--tool", tool], more].concat();
        skep(&args)
    };
    let (code, text, error) = explained("docs_fetch", &[]);
    assert_eq!(code, Some(0), "{text}{error}");
    assert!(text.starts_with("VirtualMCPServer default/all\n"), "{text}");
    let last = "allowed; it is sent to the backend docs as fetch, with the header X-Api-Key\n";
    assert!(text.ends_with(last) && !text.contains("very-secret"), "{text}");
    let (_, text, _) = explained("docs_fetch", &["-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        json["sentTo"],
        serde_json::json!({"kind": "backend", "backend": "docs", "name": "fetch", "authentication": "with the header X-Api-Key"})
    );
    // What git has is not in its status.
    let (code, text, _) = explained("git_log", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("what these have is not known here: git\n"), "{text}");
    let (code, text, _) = explained("git_push", &[]);
    assert_eq!((code, text.contains("\nonly a running server decides")), (Some(4), true), "{text}");

    let tests = folder.join("tests.yaml");
    let listed = "- {name: listed, server: all, tools: {git: [log]}, expect: [git_log]}\n";
    fs::write(&tests, format!("manifests: [all.yaml]\ntests:\n{listed}")).unwrap();
    let (code, text, error) = skep(&["test", "-f", tests.to_str().unwrap()]);
    assert_eq!((code, text.lines().last()), (Some(0), Some("1 tests passed")), "{text}{error}");
}

/// The file with a server that has these policies.
fn with_policies(name: &str, policies: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("server.yaml");
    let server = format!(
        "
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata: {{name: demo}}
spec:
  image: demo
  transport: stdio
  authzConfig:
    type: inline
    inline:
      policies: {policies}
"
    );
    fs::write(&file, server).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_policy_that_cannot_be_evaluated_is_the_reason_also_if_another_one_permits() {
    let policies = r#"['@id("readers") permit(principal, action, resource) when { resource.readOnlyHint == true };',
        'permit(principal, action, resource == Tool::"echo");']"#;
    let file = with_policies("failing-policy", policies);
    let (code, text, _) = skep(&["explain", "-f", &file, "--tool", "echo"]);
    assert_eq!(code, Some(4), "the server may give the hint: {text}");
    assert!(text.contains("policies read hints of the tool, which a running server knows"), "{text}");
    let reason = "without hints: readers (policies[0]) could not be evaluated at \"resource.readOnlyHint\": this request has none, so what the policy \
                  decides is unknown; write resource has readOnlyHint && ...\n";
    assert!(text.contains(reason) && !text.contains("policies[1]"), "{text}");
}

#[test]
fn what_only_a_running_server_decides_is_said_and_no_decision_point_is_queried() {
    // Whoever is asked here fails the test: nobody listens.
    let hints = r#"['permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
        'permit(principal, action, resource == Tool::"echo");']"#;
    let file = with_policies("hints", hints);
    let (code, text, _) = skep(&["explain", "-f", &file, "--tool", "delete"]);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("authorization  not decided here\n"), "{text}");
    assert!(
        text.ends_with(
            "only a running server decides; if it allows it, it is sent to the server demo by stdio\n"
        ),
        "{text}"
    );
    let (code, text, _) = skep(&["explain", "-f", &file, "--tool", "delete", "-o", "json"]);
    assert!(code == Some(4) && text.contains("\"allowed\": null"), "{text}");
    assert_eq!(skep(&["explain", "-f", &file, "--tool", "echo"]).0, Some(0), "whatever its hints are");
    let tests = PathBuf::from(&file).with_file_name("tests.yaml");
    let cases = "
- {name: one, tool: delete, expect: denied}
- {name: two, tool: echo, expect: allowed}
";
    fs::write(&tests, format!("manifests: [server.yaml]\ntests: {cases}")).unwrap();
    let (code, text, _) = skep(&["test", "-f", tests.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    let reason = "tests.yaml:3: one: authorization does not decide it here: policies read hints";
    assert!(text.starts_with("FAILED  ") && text.contains(reason), "{text}");
    assert!(text.contains("ok      two\n"), "{text}");
    fs::write(
        &tests,
        "manifests: [server.yaml]\ntests: [{name: all, tools: [echo, delete], expect: [echo]}]\n",
    )
    .unwrap();
    let (code, _, error) = skep(&["test", "-f", tests.to_str().unwrap()]);
    assert!(
        code == Some(1) && error.contains("all: ") && error.contains("hints of the tool \"delete\""),
        "{error}"
    );
}

#[test]
fn a_policy_that_is_likely_a_mistake_is_said_where_it_is_explained_and_tested() {
    let file =
        with_policies("mistaken-policy", r#"['permit(principal, action == Action::"cal_tool", resource);']"#);
    let warning = "warning: MCPServer demo: ";
    let (code, text, errors) = skep(&["explain", "-f", &file, "--tool", "echo"]);
    assert_eq!((code, text.contains("no policy permits it")), (Some(3), true), "{text}");
    assert!(errors.contains(warning) && errors.contains("use call_tool"), "{errors}");
    let tests = PathBuf::from(&file).with_file_name("tests.yaml");
    fs::write(&tests, "manifests: [server.yaml]\ntests: [{name: one, tool: echo, expect: denied}]\n")
        .unwrap();
    let (code, text, errors) = skep(&["test", "-f", tests.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    assert!(errors.contains(warning) && errors.contains("use call_tool"), "{errors}");
}

#[test]
fn a_composite_tool_of_a_file_is_answered_with_the_tools_of_its_steps() {
    let file = repository("examples/workflows.yaml");
    let file = file.to_str().unwrap();
    let (code, text, _) = skep(&["explain", "-f", file, "--server", "announcements", "--tool", "announce"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("it runs a workflow, which calls demo-steps_time, demo-steps_echo:"), "{text}");
}

#[test]
fn a_caller_is_not_explained_to_a_server_that_takes_all_for_the_same() {
    let file = repository("examples/quickstart.yaml");
    let file = file.to_str().unwrap();
    for server in ["mcpserver/demo", "virtualmcpserver/all"] {
        for [option, value] in
            [["--claims", r#"{"sub": "bob"}"#], ["--token", "t"], ["--service-account", "a/b"]]
        {
            let words = ["explain", "-f", file, "--server", server, option, value, "--tool", "echo"];
            let (code, text, error) = skep(&words);
            assert_eq!((code, &*text), (Some(1), ""), "{server} {option}: {error}");
            assert!(error.contains("takes all callers for the same one"), "{server} {option}: {error}");
        }
    }
}
