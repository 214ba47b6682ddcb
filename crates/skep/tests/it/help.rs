//! What the command line says of itself.

use std::process::{Command, Output};

fn skep(args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_skep")).args(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

#[test]
fn every_command_has_help_with_an_example() {
    let commands = ["completions", "crds", "demo-server", "operator", "proxy", "render", "run"];
    for command in commands {
        for args in [[command, "--help"], [command, "-h"], ["help", command]] {
            let (code, said) = skep(&args);
            assert_eq!(code, Some(0), "{args:?}: {said}");
            assert!(
                said.contains("Usage: skep ") && said.contains(&format!("\n  skep {command}")),
                "{args:?}: {said}"
            );
        }
    }
    for args in [&["--help"][..], &["-h"], &["help"]] {
        let (code, said) = skep(args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        assert!(said.contains("\n  skep run -f "), "{said}");
        // What no person calls is not listed.
        let listed = commands.iter().filter(|command| said.contains(&format!("\n  {command} ")));
        assert_eq!(listed.count(), commands.len() - 1, "{said}");
    }
}

#[test]
fn without_a_command_one_is_shown_what_there_is() {
    let (code, said) = skep(&[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("Usage: skep <COMMAND>") && said.contains("\n  skep run -f "), "{said}");
}

#[test]
fn the_version_is_printed() {
    assert_eq!(skep(&["--version"]), (Some(0), format!("skep {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn a_word_that_is_wrong_is_named_with_what_was_meant() {
    for (args, expected) in [
        (&["rendr"][..], "error: unrecognized subcommand 'rendr'"),
        (&["run", "--fil", "x"], "error: unexpected argument '--fil' found"),
        (&["render", "--flie=x"], "error: unexpected argument '--flie' found"),
        (&["operator", "--leader-elct"], "error: unexpected argument '--leader-elct' found"),
        (&["operator", "--workers", "0"], "error: invalid value '0' for '--workers <WORKERS>'"),
        (&["crds", "-o", "xml"], "error: invalid value 'xml' for '--output <OUTPUT>'"),
        (&["serve", "--config=/x"], "error: skep has no virtual MCP server yet: set operator.vmcpImage"),
        (&["proxy", "rnu"], "error: \"rnu\" is not a command of skep proxy: use skep proxy run IMAGE"),
    ] {
        let (code, said) = skep(args);
        assert_ne!(code, Some(0));
        assert!(said.starts_with(expected), "{said}");
    }
    assert!(skep(&["run", "--fil", "x"]).1.contains("a similar argument exists: '--file'"));
    assert!(skep(&["rendr"]).1.contains("a similar subcommand exists: 'render'"));
}

#[test]
fn a_shell_can_be_taught_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, said) = skep(&["completions", shell]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("skep") && said.contains("render"), "{said}");
    }
}

#[test]
fn the_error_without_a_cluster_is_one_line_with_what_was_searched() {
    for args in [&["plan"][..], &["plan", "--context", "work"]] {
        let mut skep = Command::new(env!("CARGO_BIN_EXE_skep"));
        let output = skep.args(args).env_clear().env("KUBECONFIG", "/no/such/file").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.matches("/no/such/file").count()), (Some(1), 1), "{said}");
    }
}
