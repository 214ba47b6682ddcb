//! `skep explain` and `skep test`, as processes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

fn skep(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_skep")).env_clear().args(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cedar.yaml");
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
    assert!(text.contains(r#"policy1: permit(principal in THVGroup::"engineers""#), "{text}");
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
    assert!(json["middlewares"][1]["details"][0].as_str().unwrap().starts_with("policy2: forbid("), "{json}");
    let (code, text, _) = skep(&["explain", "-f", &file, "--tool", "echo"]);
    assert_eq!((code, text.contains("auth  rejects it with 401")), (Some(3), true), "{text}");
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
    let expected = "FAILED  wrong: authorization rejects it with 403: Unauthorized (no policy permits it)
FAILED  also wrong: listed are [\"echo\"]
";
    assert_eq!(text, expected);
    let file = tests_file("misspelled-policy-tests", "- {name: a, tool: add, expects: allowed}\n");
    let (code, _, error) = skep(&["test", "-f", file.to_str().unwrap()]);
    assert!(code == Some(1) && error.contains("expects"), "{error}");
}
