//! `skep client`: servers in the configuration of MCP clients.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Command,
};

use serde_json::{Value, json};

use super::{DEMO, Run, server, until};

/// A running server, and the home of a user with clients.
struct Home {
    run: Run,
    path: PathBuf,
}

impl Home {
    fn new() -> Self {
        let run = Run::start(&server("clients-demo", DEMO, ""));
        run.row("clients-demo");
        let path = run.manifests.0.join("home");
        fs::create_dir_all(path.join(".cursor")).unwrap();
        Self { run, path }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.run.address("clients-demo"))
    }

    /// Whether `skep client` succeeds, and its output.
    fn client(&self, args: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
        self.run.manifests.isolate(&mut command);
        command.env("HOME", &self.path).env_remove("XDG_CONFIG_HOME").env_remove("CLAUDE_CONFIG_DIR");
        let ended = command.arg("client").args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ended.status.success(), text(ended.stdout) + &text(ended.stderr))
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path.join(file)).unwrap()).unwrap()
    }
}

#[test]
fn a_server_is_added_to_a_client_and_removed_and_everything_else_stays() {
    let home = Home::new();
    let before =
        "{\n    \"other\": 1.50,\n    \"mcpServers\": {\n        \"own\": {\"command\": \"x\"}\n    }\n}\n";
    // A file that is managed elsewhere, and only the user may read.
    let (file, target) = (home.path.join(".cursor/mcp.json"), home.path.join("dotfile.json"));
    fs::write(&target, before).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&target, &file).unwrap();

    let (done, shown) = home.client(&["add", "cursor", "--dry-run"]);
    assert!(done && shown.contains("\n+        \"clients-demo\": {\n"), "{shown}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);

    let (done, shown) = home.client(&["add", "cursor", "clients-demo"]);
    assert!(done && shown.contains("\n-        \"own\": {\"command\": \"x\"}\n+"), "{shown}");
    let expected = json!({"own": {"command": "x"}, "clients-demo": {"url": home.url()}});
    assert_eq!(home.json(".cursor/mcp.json")["mcpServers"], expected);
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(home.path.join("dotfile.json.skep-backup")).unwrap(), before);
    assert!(home.client(&["ls"]).1.contains("mcp.json  clients-demo\n"));
    assert_eq!(home.client(&["add", "cursor"]), (true, "nothing to change\n".into()));

    let (done, shown) = home.client(&["remove", "cursor"]);
    assert!(done && shown.contains("\n-        \"clients-demo\": {\n"), "{shown}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn each_client_gets_the_form_that_it_reads() {
    let home = Home::new();
    for folder in [".config/Claude", ".config/Code/User"] {
        fs::create_dir_all(home.path.join(folder)).unwrap();
    }
    for client in ["claude-code", "claude-desktop", "vscode"] {
        let (done, shown) = home.client(&["add", client]);
        assert!(done, "{shown}");
    }
    let url = home.url();
    let http = json!({"clients-demo": {"type": "http", "url": url}});
    assert_eq!(home.json(".claude.json"), json!({"mcpServers": http}));
    assert_eq!(home.json(".config/Code/User/mcp.json"), json!({"servers": http}));
    let process = json!({"clients-demo": {"command": "npx", "args": ["-y", "mcp-remote", url]}});
    assert_eq!(home.json(".config/Claude/claude_desktop_config.json"), json!({"mcpServers": process}));
}

#[test]
fn what_the_user_has_configured_is_not_touched() {
    let home = Home::new();
    let file = home.path.join(".cursor/mcp.json");
    let own = r#"{"mcpServers": {"clients-demo": {"url": "https://example.com/mcp"}}}"#;
    fs::write(&file, own).unwrap();
    let (done, error) = home.client(&["add", "cursor"]);
    assert!(!done && error.contains("you have configured a server clients-demo yourself"), "{error}");
    assert_eq!(home.client(&["remove", "cursor"]), (true, "nothing to change\n".into()));
    let commented = format!("// mine\n{}", own.replace("}}", "},}"));
    fs::write(&file, &commented).unwrap();
    let (done, error) = home.client(&["add", "cursor"]);
    assert!(!done && error.contains("you have configured a server clients-demo yourself"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), commented);
    fs::write(&file, "{ // comment\n}").unwrap();
    assert!(home.client(&["add", "cursor"]).0);
    let added = fs::read_to_string(&file).unwrap();
    assert!(added.starts_with("{ // comment\n") && added.contains(&home.url()), "{added}");
    let (done, shown) = home.client(&["remove", "cursor"]);
    assert!(done && !fs::read_to_string(&file).unwrap().contains(&home.url()), "{shown}");
    fs::write(&file, "{ 'mine': 1 }").unwrap();
    assert!(!home.client(&["add", "cursor"]).0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ 'mine': 1 }");
    let (done, error) = home.client(&["add", "vscode"]);
    assert!(!done && error.starts_with("error: vscode is not installed: "), "{error}");
    let (done, error) = home.client(&["add", "cursor", "lost"]);
    assert!(!done && error.starts_with("error: there is no server lost, only: clients-demo"), "{error}");
}

#[test]
fn an_entry_that_the_user_has_changed_since_stays() {
    let home = Home::new();
    assert!(home.client(&["add", "cursor"]).0);
    let changed =
        json!({"mcpServers": {"clients-demo": {"url": home.url(), "headers": {"a": "b"}}}}).to_string();
    fs::write(home.path.join(".cursor/mcp.json"), &changed).unwrap();
    let (done, shown) = home.client(&["remove", "cursor"]);
    assert!(
        done && shown.starts_with("clients-demo was changed since skep added it, and stays\n"),
        "{shown}"
    );
    assert_eq!(fs::read_to_string(home.path.join(".cursor/mcp.json")).unwrap(), changed);
}

#[test]
fn without_a_running_server_nothing_is_added() {
    let mut home = Home::new();
    home.run.signal("TERM");
    assert!(until(|| home.run.process.try_wait().unwrap()).is_some());
    let (done, error) = home.client(&["add", "cursor"]);
    assert!(!done && error.starts_with("error: no server is running: start one with skep run"), "{error}");
}
