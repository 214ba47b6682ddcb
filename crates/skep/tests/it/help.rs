//! The help and the errors of the command line.

use std::process::{Command, Output};

fn skep(args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_skep")).args(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

#[test]
fn every_command_has_help_with_an_example() {
    let commands = [
        "client",
        "completions",
        "crds",
        "demo-server",
        "explain",
        "logs",
        "ls",
        "operator",
        "proxy",
        "render",
        "rm",
        "run",
        "stop",
        "test",
    ];
    for command in commands {
        for args in [[command, "--help"], [command, "-h"], ["help", command]] {
            let (code, output) = skep(&args);
            assert_eq!(code, Some(0), "{args:?}: {output}");
            assert!(
                output.contains("Usage: skep ") && output.contains(&format!("\n  skep {command}")),
                "{args:?}: {output}"
            );
        }
    }
    for args in [&["--help"][..], &["-h"], &["help"]] {
        let (code, output) = skep(args);
        assert_eq!(code, Some(0), "{args:?}: {output}");
        assert!(output.contains("\n  skep run -f "), "{output}");
        // Commands that only pods call are not listed.
        let listed = commands.iter().filter(|command| output.contains(&format!("\n  {command} ")));
        assert_eq!(listed.count(), commands.len() - 1, "{output}");
    }
}

#[test]
fn without_a_command_the_help_is_shown() {
    let (code, output) = skep(&[]);
    assert_eq!(code, Some(2));
    assert!(output.contains("Usage: skep <COMMAND>") && output.contains("\n  skep run -f "), "{output}");
}

#[test]
fn the_version_is_printed() {
    assert_eq!(skep(&["--version"]), (Some(0), format!("skep {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn an_error_names_the_invalid_word_and_a_similar_one() {
    for (args, expected) in [
        (&["rendr"][..], "error: unrecognized subcommand 'rendr'"),
        (&["run", "--fil", "x"], "error: unexpected argument '--fil' found"),
        (&["render", "--flie=x"], "error: unexpected argument '--flie' found"),
        (&["operator", "--leader-elct"], "error: unexpected argument '--leader-elct' found"),
        (&["operator", "--workers", "0"], "error: invalid value '0' for '--workers <WORKERS>'"),
        (&["crds", "-o", "xml"], "error: invalid value 'xml' for '--output <OUTPUT>'"),
        (&["serve", "--config=/x"], "error: cannot read /x: No such file or directory"),
        (&["vmcp", "serve"], "error: no configuration file: name one with --config"),
        (&["proxy", "rnu"], "error: \"rnu\" is not a command of skep proxy: use skep proxy run IMAGE"),
    ] {
        let (code, output) = skep(args);
        assert_ne!(code, Some(0));
        assert!(output.starts_with(expected), "{output}");
    }
    assert!(skep(&["run", "--fil", "x"]).1.contains("a similar argument exists: '--file'"));
    assert!(skep(&["rendr"]).1.contains("a similar subcommand exists: 'render'"));
}

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, output) = skep(&["completions", shell]);
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("skep") && output.contains("render"), "{output}");
    }
}

#[test]
fn the_error_without_a_cluster_is_one_line_with_the_searched_file() {
    for args in [&["plan"][..], &["plan", "--context", "work"]] {
        let mut skep = Command::new(env!("CARGO_BIN_EXE_skep"));
        let ended = skep.args(args).env_clear().env("KUBECONFIG", "/no/such/file").output().unwrap();
        let output = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), output.matches("/no/such/file").count()), (Some(1), 1), "{output}");
    }
}
