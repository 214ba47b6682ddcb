//! `skep vmcp init`, as a process.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use skep_api::kinds::MCPServer;

#[tokio::test]
async fn the_members_of_a_group_become_the_backends_of_a_file_that_is_accepted() {
    let test = skep_testkit::namespace().await;
    let servers: Api<MCPServer> = test.api();
    for (name, group, url) in [
        ("b", "team", Some("http://b.example:8080/mcp")),
        ("a", "team", Some("http://a.example:8080/mcp")),
        ("starting", "team", None),
        ("other", "other", Some("http://other.example:8080/mcp")),
    ] {
        let server: MCPServer = serde_json::from_value(json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": name},
            "spec": {"image": "example", "transport": "streamable-http", "groupRef": {"name": group}},
        }))
        .unwrap();
        test.create_object(&server).await;
        if let Some(url) = url {
            let status = Patch::Merge(json!({"status": {"url": url}}));
            servers.patch_status(name, &PatchParams::default(), &status).await.unwrap();
        }
    }
    let user = test.admin("author");
    let skep = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
        command.env_clear().env("KUBECONFIG", user.kubeconfig_file()).arg("vmcp").args(words);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout) + &text(output.stderr))
    };
    let file = test.folder().join("vmcp.yaml");
    let path = file.to_str().unwrap();
    let group = ["init", "--group", "team", "-n", test.name()];
    assert_eq!(skep(&[&group[..], &["-o", path]].concat()), (true, String::new()));
    let written = fs::read_to_string(&file).unwrap();
    let names: Vec<&str> = written.lines().filter_map(|line| line.strip_prefix("  - name: ")).collect();
    assert_eq!(names, ["\"a\"", "\"b\""]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let validated = "name: team-vmcp\ngroup: team\nbackends: 2\nincoming: anonymous\noutgoing: inline, no strategies\n\
        conflict resolution: prefix\ncomposite tools: 0\n";
    assert_eq!(skep(&["validate", "--config", path]), (true, validated.to_owned()));
    for words in [&group[..], &[&group[..], &["-o", "-"]].concat()] {
        assert_eq!(skep(words), (true, written.clone()));
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(skep(&[&group[..], &["--config", path]].concat()), (true, String::new()));
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    let (succeeded, output) = skep(&["init"]);
    assert!(!succeeded && output.contains("--group"), "{output}");
}
