//! Images, with a container engine.
//!
//! The end-to-end cases run images with a real Podman. The engine here is a fake for what a real one cannot do on
//! demand: delay a pull, fail at a given moment, and list the requests that it got.

mod fake;

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::fake::FakeEngine;
use super::{Client, DEMO, Manifests, Run, server, until};

const IMAGE: &str = "registry.example/mcp:1";

/// The manifest of a server with an image only.
fn image(name: &str, image: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: {{name: {name}}}\nspec:\n  image: \
         {image}\n{spec}\n"
    )
}

fn demo_image() -> String {
    format!("{} demo-server", env!("CARGO_BIN_EXE_skep"))
}

fn started(engine: &FakeEngine, text: &str) -> Run {
    let manifests = Manifests::new(text);
    let mut command = manifests.command();
    command.env("DOCKER_HOST", engine.host());
    Run::of(manifests, command)
}

#[test]
fn an_image_is_pulled_and_run_with_the_settings_of_its_pod_and_leaves_nothing_behind() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let spec = "  args: [--all]
  env: [{name: PLAIN, value: seen}]
  secrets: [{name: token, key: api, targetEnvName: API_TOKEN}]
  volumes: [{name: data, hostPath: /srv/data, mountPath: /data, readOnly: true}]
  podTemplateSpec:
    spec:
      containers:
        - name: mcp
          volumeMounts: [{name: settings, mountPath: /etc/settings}, {name: tmp, mountPath: /tmp}]
      volumes: [{name: settings, configMap: {name: settings}}, {name: tmp, emptyDir: {}}]
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {api: hunter2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a.toml: x = 1}";
    engine.hold(true);
    let mut run = started(&engine, &image("demo", IMAGE, spec));
    run.expect_output(&format!("MCPServer demo: pulling the image {IMAGE}: 40 %"));
    engine.hold(false);
    assert!(run.row("demo").ends_with("Ready    echo, add, time"), "{}", run.output());
    let sum = run.client("demo").call_tool("add", json!({"a": 2, "b": 3}));
    assert_eq!(sum["result"]["content"][0]["text"], "5");
    let made = engine.made();
    let made = made.last().unwrap();
    assert_eq!(
        (&made["Image"], &made["Cmd"], &made["User"]),
        (&json!(IMAGE), &json!(["--all"]), &json!("1000:1000"))
    );
    let env = made["Env"].as_array().unwrap();
    for variable in ["PLAIN=seen", "API_TOKEN=hunter2", "MCP_TRANSPORT=stdio"] {
        assert!(env.contains(&json!(variable)), "no {variable} in {env:?}");
    }
    let host = &made["HostConfig"];
    assert_eq!((&host["CapDrop"], &host["ReadonlyRootfs"]), (&json!(["ALL"]), &json!(true)));
    assert_eq!(host["Tmpfs"], json!({"/tmp": "mode=1777,exec"}));
    let binds: Vec<&str> = host["Binds"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(binds[0], "/srv/data:/data:ro");
    let (here, there) = binds[1].split_once(':').unwrap();
    assert_eq!(there, "/etc/settings/a.toml:ro,z");
    assert_eq!(fs::read_to_string(here).unwrap(), "x = 1");
    assert_eq!(engine.count(), 1, "the container that listed the tools is removed");
    run.signal("INT");
    assert!(until(|| run.process.try_wait().unwrap()).unwrap().success());
    assert_eq!(engine.count(), 0);
    assert!(!run.output().contains("hunter2"), "{}", run.output());
}

#[test]
fn a_server_can_read_its_files_despite_a_strict_umask() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let spec = "  podTemplateSpec:
    spec:
      containers: [{name: mcp, volumeMounts: [{name: settings, mountPath: /etc/settings}]}]
      volumes: [{name: settings, configMap: {name: settings}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a.toml: x = 1}";
    let manifests = Manifests::new(&image("demo", IMAGE, spec));
    let mut command = Command::new("sh");
    manifests.isolate(&mut command);
    command.args(["-c", r#"umask 077; exec "$@""#, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_skep")).arg("run").arg("-f").arg(manifests.file());
    command.env("DOCKER_HOST", engine.host());
    let run = Run::of(manifests, command);
    run.row("demo");
    let made = engine.made();
    let bind = made[0]["HostConfig"]["Binds"][0].as_str().unwrap();
    let file = Path::new(bind.split(':').next().unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file), 0o644, "the server is another user");
    let state = run.manifests.0.join("state/skep/run");
    let folder = file.ancestors().find(|path| path.parent() == Some(&state)).unwrap();
    assert_eq!((mode(folder), mode(&state)), (0o700, 0o700), "no other user can read it");
}

#[test]
fn containers_of_a_killed_process_are_removed_by_the_next_and_those_of_a_running_one_are_not() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let mut killed = started(&engine, &image("demo", IMAGE, ""));
    killed.row("demo");
    let other = started(&engine, &image("other", IMAGE, ""));
    let client = other.client("other");
    killed.signal("KILL");
    killed.process.wait().unwrap();
    assert_eq!(engine.count(), 2);
    let next = started(&engine, &image("next", IMAGE, ""));
    next.expect_output("Removed containers of an earlier skep run: 1");
    next.row("next");
    assert_eq!(engine.count(), 2);
    assert_eq!(client.tools().len(), 3);
}

#[test]
fn a_container_that_cannot_be_removed_at_once_is_removed_a_moment_later() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let mut killed = started(&engine, &image("demo", IMAGE, ""));
    killed.client("demo").tools();
    killed.signal("KILL");
    killed.process.wait().unwrap();
    engine.fail_removals(2);
    let mut next = started(&engine, &image("demo", IMAGE, ""));
    next.expect_output("Removed containers of an earlier skep run: 1");
    next.row("demo");
    engine.fail_removals(2);
    next.signal("INT");
    assert!(until(|| next.process.try_wait().unwrap()).unwrap().success());
    assert_eq!(engine.count(), 0, "{}", next.output());
}

#[test]
fn a_second_interrupt_removes_a_container_that_does_not_end() {
    let deaf = std::env::temp_dir().join(format!("skep-deaf-{}.sh", std::process::id()));
    fs::write(&deaf, "trap '' TERM INT\nwhile true; do sleep 1; done\n").unwrap();
    let engine = FakeEngine::start(&[(IMAGE, &format!("sh {}", deaf.display()))]);
    let mut run = started(&engine, &image("deaf", IMAGE, ""));
    assert!(until(|| (engine.processes().len() == 1).then_some(())).is_some(), "{}", run.output());
    run.signal("INT");
    run.expect_output("Stopping.");
    run.signal("INT");
    assert!(until(|| run.process.try_wait().unwrap()).is_some());
    assert_eq!((engine.count(), engine.processes()), (0, Vec::new()));
    fs::remove_file(deaf).unwrap();
}

#[test]
fn an_engine_that_hangs_does_not_keep_it_from_ending() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let mut run = started(&engine, &image("demo", IMAGE, ""));
    run.row("demo");
    engine.hang();
    run.signal("INT");
    run.expect_output("Stopping.");
    let start = Instant::now();
    for _ in 0..2 {
        run.signal("INT");
    }
    assert!(until(|| run.process.try_wait().unwrap()).is_some());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn an_engine_that_hangs_delays_the_end_for_a_bounded_time_and_what_is_left_is_reported() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let mut run = started(&engine, &image("demo", IMAGE, ""));
    run.row("demo");
    engine.hang();
    run.signal("INT");
    assert!(until(|| run.process.try_wait().unwrap()).unwrap().success());
    run.expect_output("The next skep run removes containers that are left.\n");
}

#[test]
fn a_changed_image_that_cannot_be_pulled_leaves_the_running_server() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let run = started(&engine, &image("demo", IMAGE, ""));
    let client = run.client("demo");
    run.manifests.write(&image("demo", "registry.example/lost:2", ""));
    run.expect_output(
        "MCPServer demo: cannot pull the image registry.example/lost:2: manifest unknown; the running server is not changed",
    );
    assert_eq!(client.tools().len(), 3);
}

#[test]
fn an_image_of_the_command_line_needs_no_file() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let manifests = Manifests::new("");
    let mut command = manifests.skep_run();
    command.args([
        "-e",
        "PLAIN=seen",
        "--secret",
        "id=API_TOKEN,env=HERE",
        "--volume",
        "data:/data:ro",
        IMAGE,
    ]);
    command.args(["--", "--all"]).env("HERE", "hunter2").env("DOCKER_HOST", engine.host()).current_dir("/");
    let run = Run::of(manifests, command);
    assert_eq!(run.client("mcp").tools().len(), 3);
    let made = &engine.made()[0];
    assert_eq!((&made["Image"], &made["Cmd"]), (&json!(IMAGE), &json!(["--all"])));
    assert_eq!(made["HostConfig"]["Binds"], json!(["/data:/data:ro"]));
    let env = made["Env"].as_array().unwrap();
    for variable in ["PLAIN=seen", "API_TOKEN=hunter2"] {
        assert!(env.contains(&json!(variable)), "no {variable} in {env:?}");
    }
}

#[test]
fn an_image_is_pulled_with_the_credentials_of_docker_login() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let manifests = Manifests::new(&image("demo", IMAGE, ""));
    // The password is in a credential helper, as with Docker Desktop.
    let helper = "#!/bin/sh\nread -r address || true\n\
                  printf '{\"ServerURL\":\"%s\",\"Username\":\"me\",\"Secret\":\"hunter2\"}' \"$address\"\n";
    let path = manifests.program("docker-credential-test", helper);
    let config = r#"{"auths": {"registry.example": {}}, "credsStore": "test"}"#;
    fs::write(manifests.0.join("config.json"), config).unwrap();
    let mut command = manifests.command();
    command.env("DOCKER_HOST", engine.host()).env("DOCKER_CONFIG", &manifests.0).env("PATH", path);
    let run = Run::of(manifests, command);
    run.row("demo");
    let expected = json!({"username": "me", "password": "hunter2", "serveraddress": "registry.example"});
    assert_eq!(engine.credentials(), [expected]);
    assert!(!run.output().contains("hunter2"), "{}", run.output());
}

#[test]
fn an_engine_may_listen_on_a_port() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let manifests = Manifests::new(&image("demo", IMAGE, ""));
    let mut command = manifests.command();
    command.env("DOCKER_HOST", format!("tcp://{}", engine.forwarded_port()));
    assert_eq!(Run::of(manifests, command).client("demo").tools().len(), 3);
}

#[test]
fn a_relative_host_path_is_an_error() {
    let engine = FakeEngine::start(&[(IMAGE, &demo_image())]);
    let spec = "  volumes: [{name: data, hostPath: ./data, mountPath: /data}]";
    let manifests = Manifests::new(&image("demo", IMAGE, spec));
    let ended = manifests.command().env("DOCKER_HOST", engine.host()).output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    let expected =
        "MCPServer demo: spec.volumes[0].hostPath: hostPath ./data is relative: write the absolute path";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn an_image_that_cannot_be_pulled_is_reported_and_others_run() {
    let engine = FakeEngine::start(&[]);
    let run = started(&engine, &(image("lost", "registry.example/lost:2", "") + &server("demo", DEMO, "")));
    run.expect_output(
        "MCPServer lost: cannot pull the image registry.example/lost:2: manifest unknown; \
         retrying",
    );
    assert_eq!(Client::new(run.address("demo")).tools().len(), 3);
}

#[test]
fn a_container_that_cannot_be_started_is_reported_with_the_error_of_the_engine() {
    let engine = FakeEngine::start(&[(IMAGE, "/no/such/program")]);
    let run = started(&engine, &image("demo", IMAGE, ""));
    run.expect_output("MCPServer demo: it cannot be started: exec: /no/such/program: ");
    assert!(!run.output().contains("see its output above"), "{}", run.output());
}

#[test]
fn an_engine_that_does_not_respond_is_named() {
    let manifests = Manifests::new(&image("demo", IMAGE, ""));
    let socket = manifests.0.join("engine.sock");
    // It no longer listens.
    drop(UnixListener::bind(&socket).unwrap());
    let ended =
        manifests.command().env("DOCKER_HOST", format!("unix://{}", socket.display())).output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    let expected = format!("MCPServer demo: the container engine at {} does not respond: ", socket.display());
    assert!(error.contains(&expected) && error.contains("start it, and check your permissions"), "{error}");
}
