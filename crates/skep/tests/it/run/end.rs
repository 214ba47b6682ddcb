//! Ctrl-C, a second one, and other signals.

use std::{fs, process::Command};

use skep_testkit::process::is_running;

use super::{DEMO, Manifests, Run, server, until};

#[test]
fn each_signal_to_terminate_ends_every_process() {
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let mut run = Run::start(&(server("one", DEMO, "") + &server("two", DEMO, "")));
        run.row("one");
        let two = until(|| Some(run.children("demo-server")).filter(|children| children.len() == 2));
        let children = two.unwrap_or_else(|| panic!("{}", run.output()));
        run.signal(signal);
        let status = until(|| run.process.try_wait().unwrap()).expect("it does not end");
        assert!(status.success(), "{signal}: {status}");
        for child in children {
            assert!(!is_running(child), "{signal}");
        }
    }
}

/// A server that neither responds nor exits, with a child process, as node is under npx. It writes the id of that
/// process to a file.
fn deaf(run: &str) -> String {
    format!(
        "sh -c \"trap '' TERM INT; sh -c 'trap : TERM; while true; do sleep 1; done' & echo $! > {run}; wait; wait\""
    )
}

#[test]
fn a_second_interrupt_also_kills_the_child_processes_of_a_server() {
    let number = std::env::temp_dir().join(format!("skep-grandchild-{}", std::process::id()));
    let command = deaf(number.to_str().unwrap());
    let mut run = Run::start(&server("deaf", &format!("{command:?}"), ""));
    let grandchild = until(|| fs::read_to_string(&number).ok()?.trim().parse::<u32>().ok());
    let grandchild = grandchild.unwrap_or_else(|| panic!("{}", run.output()));
    let child = run.child("trap");
    run.signal("INT");
    run.expect_output("Stopping. Press Ctrl-C again to stop at once.");
    assert!(is_running(child) && is_running(grandchild));
    run.signal("INT");
    assert!(until(|| run.process.try_wait().unwrap()).is_some());
    assert!(until(|| (!is_running(child) && !is_running(grandchild)).then_some(())).is_some());
    fs::remove_file(number).unwrap();
}

#[test]
fn the_servers_of_a_process_that_is_killed_end_with_all_that_they_have_started() {
    let number = std::env::temp_dir().join(format!("skep-orphan-{}", std::process::id()));
    let command = deaf(number.to_str().unwrap());
    let mut run = Run::start(&server("deaf", &format!("{command:?}"), "  transport: streamable-http"));
    let grandchild = until(|| fs::read_to_string(&number).ok()?.trim().parse::<u32>().ok());
    let grandchild = grandchild.unwrap_or_else(|| panic!("{}", run.output()));
    let child = run.child("trap");
    run.signal("KILL");
    run.process.wait().unwrap();
    assert!(until(|| (!is_running(child) && !is_running(grandchild)).then_some(())).is_some());
    fs::remove_file(number).unwrap();
}

#[test]
fn with_nohup_a_closed_terminal_ends_nothing() {
    let manifests = Manifests::new(&server("demo", DEMO, ""));
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_skep")).arg("run").arg("-f").arg(manifests.file());
    manifests.isolate(&mut command);
    let run = Run::of(manifests, command);
    let client = run.client("demo");
    run.signal("HUP");
    // It goes on: it notices a change.
    run.manifests.write(&(server("demo", DEMO, "") + &server("other", DEMO, "")));
    run.expect_output("changed, reloading");
    assert_eq!(client.tools().len(), 3);
}

#[test]
fn the_files_of_a_run_that_was_killed_are_removed_by_the_next_and_those_of_another_are_not() {
    let folder = std::env::temp_dir().join(format!("skep-killed-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let start = |name: &str| {
        let manifests = Manifests::new(&server(name, DEMO, ""));
        let mut command = manifests.command();
        command.env("XDG_STATE_HOME", &folder);
        let run = Run::of(manifests, command);
        run.row(name);
        run
    };
    let files = |run: &Run| {
        let prefix = format!("skep-run-{}-", run.process.id());
        let names = fs::read_dir(folder.join("skep/run")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with(&prefix)).count()
    };
    let (mut killed, other) = (start("killed"), start("other"));
    killed.signal("KILL");
    killed.process.wait().unwrap();
    assert_eq!((files(&killed), files(&other)), (1, 1));
    let next = start("next");
    assert_eq!((files(&killed), files(&other), files(&next)), (0, 1, 1));
    drop((other, next));
    fs::remove_dir_all(&folder).unwrap();
}
