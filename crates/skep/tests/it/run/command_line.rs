//! Packages of the command line. `npx` and `uvx` are scripts here, which print what they get.

use serde_json::json;

use super::{DEMO, Manifests, Run, server};

#[test]
fn a_package_gets_variables_and_secrets() {
    let manifests = Manifests::new("FROM_FILE=1\nOVERRIDDEN=file\n");
    let path = manifests.programs(&["npx"]);
    let mut command = manifests.skep_run();
    command.arg("--env-file").arg(manifests.file());
    command.args([
        "-e",
        "OVERRIDDEN=option",
        "-e",
        "INHERITED",
        "--secret",
        "GITHUB_TOKEN",
        "npx://@a/x",
        "--",
        "b c",
    ]);
    command
        .env("PATH", path)
        .env("INHERITED", "seen")
        .env("GITHUB_TOKEN", "hunter2")
        .env("OTHER_TOKEN", "hunter3");
    command.env("HTTPS_PROXY", "http://proxy.example:3128").env("npm_config_registry", "https://npm.example");
    let run = Run::of(manifests, command);
    assert_eq!(run.client("x").tools().len(), 3);
    let output = run.output();
    for line in [
        "FROM_FILE=1",
        "OVERRIDDEN=option",
        "INHERITED=seen",
        "GITHUB_TOKEN=hunter2",
        "HTTPS_PROXY=http://proxy.example:3128",
        "npm_config_registry=https://npm.example",
        "args: -y @a/x b c",
    ] {
        assert!(output.contains(&format!("[x] {line}\n")), "no {line:?} in {output}");
    }
    assert!(!output.contains("hunter3"), "{output}");
}

#[test]
fn two_packages_of_one_name_are_two_servers() {
    let manifests = Manifests::new("");
    let path = manifests.programs(&["npx", "uvx"]);
    let mut command = manifests.skep_run();
    command.args(["npx://@a/x", "uvx://x"]).env("PATH", path);
    let run = Run::of(manifests, command);
    assert_ne!(run.address("x"), run.address("x-2"));
    assert_eq!((run.client("x").tools().len(), run.client("x-2").tools().len()), (3, 3));
}

#[test]
fn two_kinds_of_one_name_are_two_servers_for_a_client() {
    let remote = "---\napiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPRemoteProxy\nmetadata: {name: demo}\n\
                  spec: {remoteUrl: 'https://nowhere.invalid/mcp'}\n";
    let run = Run::start(&(server("demo", DEMO, "") + remote));
    let url = |name: &str| format!("http://{}/mcp", run.address(name));
    let expected = ["mcpserver/demo", "mcpremoteproxy/demo"]
        .map(|name| (name.replace('/', "-"), json!({"type": "http", "url": url(name)})));
    assert_eq!(run.pasted()["mcpServers"], json!(expected.into_iter().collect::<serde_json::Map<_, _>>()));
}
