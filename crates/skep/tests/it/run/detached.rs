//! Runs in the background: `skep run -d`, `ls`, `logs`, `stop` and `rm`.

use std::{
    fs,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use skep_testkit::process::is_running;

use super::{Client, DEMO, Manifests, Run, server, until};

/// The runs of one user.
struct User {
    manifests: Manifests,
    path: String,
}

impl User {
    fn new(text: &str) -> Self {
        let manifests = Manifests::new(text);
        let path = manifests.programs(&["npx"]);
        Self { manifests, path }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
        self.manifests.isolate(&mut command);
        command.args(args).env("PATH", &self.path).stdin(Stdio::null());
        command
    }

    fn skep(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The output of a command that succeeds.
    fn print(&self, args: &[&str]) -> String {
        let ended = self.skep(args);
        assert!(ended.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    }

    /// The error of a command that fails.
    fn error(&self, args: &[&str]) -> String {
        let ended = self.skep(args);
        assert_eq!(ended.status.code(), Some(1), "{args:?}");
        String::from_utf8(ended.stderr).unwrap()
    }

    fn runs(&self) -> Vec<Value> {
        serde_json::from_str(&self.print(&["ls", "--all", "-o", "json"])).unwrap()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        for run in self.runs() {
            self.skep(&["rm", "--force", run["name"].as_str().unwrap()]);
        }
    }
}

fn client(server: &Value) -> Client {
    let url = server["url"].as_str().unwrap();
    Client::new(url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap())
}

#[test]
fn a_run_in_the_background_is_listed_logged_stopped_and_removed() {
    let user = User::new("");
    let printed = user.print(&["run", "-d", "-e", "TOKEN=hunter2", "npx://@a/x"]);
    assert!(printed.starts_with("RUN  NAME  URL ") && printed.contains("Output: skep logs x"), "{printed}");
    let run = &user.runs()[0];
    assert_eq!((run["name"].as_str(), run["running"].as_bool()), (Some("x"), Some(true)));
    let console = run["console"].as_str().unwrap();
    assert!(
        console.contains("/#token=") && printed.contains(&format!("\nConsole: {console}\n")),
        "{printed}"
    );
    assert!(!run.to_string().contains("hunter2"), "{run}");
    assert_eq!(client(&run["servers"][0]).tools().len(), 3);
    let listed = user.print(&["ls"]);
    assert!(listed.lines().nth(1).unwrap().ends_with("streamable-http  Ready  3"), "{listed}");
    assert!(user.print(&["logs", "x"]).contains("[x] args: -y @a/x\n"));
    assert_eq!(user.print(&["logs", "-n", "1", "x"]).lines().count(), 1);
    assert!(user.error(&["rm", "x"]).starts_with("error: x is running: stop it before"));

    // A second one of the same name has a number.
    assert!(user.print(&["run", "-d", "npx://x"]).contains("Output: skep logs x-2"));
    let pid = u32::try_from(user.runs()[1]["pid"].as_u64().unwrap()).unwrap();
    assert_eq!(user.print(&["stop", "x-2", "x"]), "x-2\nx\n");
    assert!(!is_running(pid));
    assert_eq!(user.print(&["ls"]).lines().count(), 1);
    let all = user.print(&["ls", "--all"]);
    assert!(all.lines().nth(1).unwrap().contains(" Stopped "), "{all}");
    assert!(user.print(&["logs", "--follow", "x"]).contains("Stopping."), "it ends with the run");
    assert!(user.error(&["stop", "x"]).starts_with("error: x has ended already"));
    assert_eq!(user.print(&["rm", "x", "x-2"]), "x\nx-2\n");
    assert!(user.error(&["logs", "x"]).starts_with("error: there is no run x: skep ls --all"));
}

#[test]
fn a_run_in_the_background_follows_its_file_and_is_no_part_of_the_terminal() {
    let user = User::new(&server("one", DEMO, ""));
    let file = user.manifests.file().display().to_string();
    user.print(&["run", "--detach", "-f", &file]);
    let run = &user.runs()[0];
    assert_eq!(run["name"], "servers");
    let stat = fs::read_to_string(format!("/proc/{}/stat", run["pid"])).unwrap();
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, run["pid"].to_string(), "it has its own session");
    user.manifests.write(&(server("one", DEMO, "") + &server("two", DEMO, "")));
    let ready =
        |run: &Value| run["servers"].as_array().unwrap().iter().filter(|one| one["phase"] == "Ready").count();
    assert!(
        until(|| (ready(&user.runs()[0]) == 2).then_some(())).is_some(),
        "{}",
        user.print(&["logs", "servers"])
    );
}

#[test]
fn a_run_that_cannot_start_in_the_background_is_reported_and_leaves_nothing() {
    let user = User::new("");
    let error = user.error(&["run", "-d", "-f", "/no/such/file.yaml"]);
    assert!(error.starts_with("error: cannot read /no/such/file.yaml: No such file"), "{error}");
    // Nor has it a console, whose address would be part of the error.
    let image = "apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: {name: a}\nspec: {image: a.example/b, transport: stdio}\n";
    user.manifests.write(image);
    let mut command = user.command(&["run", "-d", "-f", &user.manifests.file().display().to_string()]);
    let ended = command.env("DOCKER_HOST", "unix:///nowhere/engine.sock").output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && error.starts_with("error: "), "{error}");
    assert!(!error.contains("Console") && !error.contains("token"), "{error}");
    assert_eq!(user.runs(), Vec::<Value>::new());
}

#[test]
fn a_run_in_a_terminal_is_listed_and_can_be_stopped() {
    let user = User::new(&server("demo", DEMO, ""));
    let mut command = user.manifests.command();
    // The folder of the test is the user's.
    let manifests = Manifests::new("");
    command.env("DOCKER_HOST", "unix:///nowhere/engine.sock");
    let mut run = Run::of(manifests, command);
    run.row("demo");
    let listed = until(|| Some(user.print(&["ls"])).filter(|listed| listed.contains(" Ready ")));
    assert!(listed.unwrap().contains("servers  demo  http://127.0.0.1:"));
    assert!(user.error(&["logs", "servers"]).starts_with("error: servers runs in a terminal"));
    user.print(&["stop", "servers"]);
    assert!(until(|| run.process.try_wait().unwrap()).unwrap().success());
    assert_eq!(user.runs(), Vec::<Value>::new());
}
