//! Several files, folders, standard input, pipes and lists.

use std::{fs, process::Command};

use super::{DEMO, Manifests, Run, server};

#[test]
fn standard_input_and_pipes_are_read_once_and_their_servers_stay_when_a_file_changes() {
    let manifests = Manifests::new(&server("file", DEMO, ""));
    for name in ["pipe", "input"] {
        fs::write(manifests.0.join(name), server(name, DEMO, "")).unwrap();
    }
    let mut command = Command::new("bash");
    command.args(["-c", r#"exec "$0" run -f servers.yaml -f <(cat pipe) -f - < input"#]);
    command.arg(env!("CARGO_BIN_EXE_skep")).current_dir(&manifests.0);
    manifests.isolate(&mut command);
    let run = Run::of(manifests, command);
    let clients = ["file", "pipe", "input"].map(|name| run.client(name));
    run.manifests.write(&(server("file", DEMO, "") + &server("more", DEMO, "")));
    run.expect_output("\nmore ");
    for client in clients {
        assert_eq!(client.tools().len(), 3, "{}", run.output());
    }
    assert!(!run.output().contains("not changed"), "{}", run.output());
}

#[test]
fn the_files_of_a_folder_are_one_set_of_manifests() {
    let manifests = Manifests::new(&server("one", DEMO, "  toolConfigRef: {name: few}"));
    let few = "apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPToolConfig\nmetadata: {name: few}\n\
               spec: {toolsFilter: [echo]}\n";
    fs::write(manifests.0.join("few.yml"), few).unwrap();
    fs::write(manifests.0.join("notes.txt"), "no: [manifest").unwrap();
    let mut command = manifests.skep_run();
    command.arg("-f").arg(&manifests.0);
    let run = Run::of(manifests, command);
    assert_eq!(run.client("one").tools(), ["echo"]);
    // A file that appears is loaded, too.
    fs::write(run.manifests.0.join("two.yaml"), server("two", DEMO, "")).unwrap();
    run.expect_output("\ntwo ");
}

#[test]
fn the_items_of_a_list_are_objects_and_errors_have_their_lines() {
    let list = |transport: &str| {
        format!(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: toolhive.stacklok.dev/v1beta1\n  kind: MCPServer\n  \
             metadata:\n    name: listed\n    annotations: {{skep.dev/local-command: {DEMO}}}\n  spec:\n    image: x\n    \
             transport: {transport}\n"
        )
    };
    assert_eq!(Run::start(&list("stdio")).client("listed").tools().len(), 3);
    let manifests = Manifests::new(&list("http"));
    let error = String::from_utf8(manifests.ended().stderr).unwrap();
    let expected = format!("error: {}:11: MCPServer listed: spec.transport: ", manifests.file().display());
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_duplicate_in_another_file_is_reported_with_both_files() {
    let manifests = Manifests::new(&server("one", DEMO, ""));
    let other = manifests.0.join("other.yaml");
    fs::write(&other, server("one", DEMO, "")).unwrap();
    let ended = manifests.command().arg("-f").arg(&other).output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    let (file, other) = (manifests.file(), other.display());
    let expected =
        format!("error: {other}:2: MCPServer one: duplicate of the object in {}:2: rename", file.display());
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn variables_come_from_config_maps_secrets_and_others_as_in_a_pod() {
    let spec = "  env: [{name: D, value: 'spec of $(C)'}]
  podTemplateSpec:
    spec:
      containers:
        - name: mcp
          envFrom: [{configMapRef: {name: plain}}, {prefix: S_, secretRef: {name: secret}}, {secretRef: {name: none, optional: true}}]
          env: [{name: B, value: own}, {name: C, value: '$(A)-$(B) $$(A) $(NONE)'}, {name: D, value: template}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data: {A: '1', B: '2'}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {TOKEN: hunter2}";
    let command =
        format!("sh -c 'env >&2; echo argument=$(A) >&2; exec {} demo-server'", env!("CARGO_BIN_EXE_skep"));
    let run = Run::start(&server("demo", &command, spec));
    run.row("demo");
    let output = run.output();
    let expanded = ["C=1-own $(A) $(NONE)", "D=spec of 1-own $(A) $(NONE)", "argument=1"];
    for line in ["A=1", "B=own", "S_TOKEN=hunter2"].into_iter().chain(expanded) {
        assert!(output.contains(&format!("[demo] {line}\n")), "no {line:?} in {output}");
    }
}
