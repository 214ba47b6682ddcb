//! What is said when nothing can be run: one sentence, and the exit code 1.

use std::{net::TcpListener, process::Command};

use super::{DEMO, Manifests, server};

/// What is said of these manifests, without the name of the file.
fn error(text: &str) -> String {
    let manifests = Manifests::new(text);
    let ended = manifests.ended();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said.trim().replace(manifests.file().to_str().unwrap(), "FILE")
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
    let invalid = error("kind: MCPServer\nmetadata: {name: a\n");
    assert!(invalid.starts_with("error: FILE: ") && invalid.contains("line "), "{invalid}");
    assert_eq!(
        error("apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPSever\nmetadata: {name: a}\n"),
        "error: FILE, document 1: there is no kind MCPSever in toolhive.stacklok.dev"
    );
    assert_eq!(
        error("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        "error: FILE: there is nothing to run: no MCPServer and no MCPRemoteProxy is in it"
    );
    let manifests = Manifests::new("");
    std::fs::remove_file(manifests.file()).unwrap();
    let ended = manifests.ended();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(said.starts_with("error: cannot read ") && said.contains("No such file"), "{said}");
}

#[test]
fn a_server_without_a_command_is_told_what_to_add() {
    let none =
        "apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: {name: a}\nspec: {image: x}\n";
    assert_eq!(
        error(none),
        "error: FILE: MCPServer a: there is no command to run it with: images cannot be run without a cluster yet, so \
         add the annotation skep.dev/local-command, for example \"npx -y @modelcontextprotocol/server-everything stdio\""
    );
    assert_eq!(
        error(&server("a", "\"echo 'x\"", "")),
        "error: FILE: MCPServer a: metadata.annotations[skep.dev/local-command]: a quote is not closed: write it as in a \
         shell"
    );
}

#[test]
fn a_secret_that_is_missing_is_told_with_its_field() {
    let secrets = "  secrets: [{name: token, key: api, targetEnvName: API_TOKEN}]";
    assert_eq!(
        error(&server("a", DEMO, secrets)),
        "error: FILE: MCPServer a: spec.secrets: there is no Secret token in the file: add it"
    );
    let other = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {other: hunter2}";
    let missing = error(&server("a", DEMO, &format!("{secrets}{other}")));
    assert_eq!(missing, "error: FILE: MCPServer a: spec.secrets: the Secret token has no key api: add it");
}

#[test]
fn what_only_a_pod_can_be_given_is_told_and_not_left_out() {
    let redis = "  sessionStorage: {provider: redis, address: 'redis:6379', passwordRef: {name: redis, key: password}}
---
apiVersion: v1
kind: Secret
metadata: {name: redis}
stringData: {password: hunter2}";
    assert_eq!(
        error(&server("a", DEMO, redis)),
        "error: FILE: MCPServer a: the secret that its proxy gets as THV_SESSION_REDIS_PASSWORD is for a cluster only, \
         for now"
    );
}

#[test]
fn a_port_that_is_taken_is_told_if_the_manifest_asks_for_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = error(&server("a", DEMO, &format!("  proxyPort: {port}")));
    let expected = format!("error: FILE: MCPServer a: spec.proxyPort: cannot listen on 127.0.0.1:{port}: ");
    assert!(said.starts_with(&expected) && said.ends_with("choose another, or leave it out"), "{said}");
}

#[test]
fn without_a_file_and_a_package_one_is_told_what_to_write() {
    for (args, expected) in [
        (&["run"][..], "error: there is nothing to run: name a file, as in skep run -f server.yaml"),
        (
            &["run", "ghcr.io/a/b"],
            "error: \"ghcr.io/a/b\" is not a package: write npx://PACKAGE or uvx://PACKAGE",
        ),
    ] {
        let ended = Command::new(env!("CARGO_BIN_EXE_skep")).args(args).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1));
        assert!(said.starts_with(expected), "{said}");
    }
}
