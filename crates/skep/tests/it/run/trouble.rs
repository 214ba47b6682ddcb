//! Servers that fail, and what is reported about them.

use skep_testkit::free_port;

use super::{
    Client, DEMO, Manifests, Run,
    life::{fake_remote, own_address, quickstart},
    server, until,
};

#[test]
fn without_a_network_the_demo_works_and_the_table_shows_why_the_other_one_fails() {
    let run = Run::start(&quickstart("https://nowhere.invalid/mcp"));
    assert!(run.row("demo").ends_with("Ready    echo, add, time"), "{}", run.output());
    assert!(run.row("docs").ends_with("streamable-http  Failed   -"), "{}", run.output());
    run.expect_output(
        "MCPRemoteProxy docs: https://nowhere.invalid/mcp is unreachable: cannot resolve nowhere.invalid: check the \
         network and the name; retrying\n",
    );
    assert_eq!(run.client("demo").tools().len(), 3);
    let output = run.output();
    let mut warnings = output.lines().filter(|line| line.starts_with("warning:"));
    // Another test may have its usual port.
    let is_repeated = warnings.any(|line| !line.contains("usual port"));
    assert!(!is_repeated, "the problem is in the table already: {output}");
}

#[test]
fn a_remote_server_that_becomes_available_again_is_detected() {
    let port = free_port();
    let run = Run::start(&quickstart(&format!("http://{}:{port}/mcp", own_address())));
    assert!(run.row("docs").contains("Failed"), "{}", run.output());
    fake_remote(port);
    run.expect_output("streamable-http  Ready    search\n");
    assert_eq!(Client::new(run.address("docs")).tools(), ["search"]);
}

#[test]
fn a_server_that_exits_at_once_is_reported_with_its_output() {
    let run =
        Run::start(&(server("sick", "sh -c 'echo no token >&2; exit 3'", "") + &server("demo", DEMO, "")));
    run.expect_output("[sick] no token\n");
    run.expect_output("MCPServer sick: it exits right after its start: see its output above; retrying");
    assert_eq!(run.client("demo").tools().len(), 3);
}

#[test]
fn the_output_of_a_server_is_logged_at_every_level() {
    let manifests = Manifests::new(&server("loud", "sh -c 'echo no token >&2; exit 3'", ""));
    let mut command = manifests.command();
    command.env("RUST_LOG", "error");
    Run::of(manifests, command).expect_output("[loud] no token\n");
}

#[test]
fn an_http_server_that_exits_at_once_is_reported_as_well() {
    let spec = "  transport: streamable-http";
    let run =
        Run::start(&(server("sick", "sh -c 'echo no port >&2; exit 3'", spec) + &server("demo", DEMO, "")));
    run.expect_output("[sick] no port\n");
    run.expect_output("MCPServer sick: it exits right after its start: see its output above; retrying");
}

#[test]
fn each_line_of_the_log_names_its_server() {
    let talk =
        |word: &str| format!("sh -c 'echo {word} >&2; exec {} demo-server'", env!("CARGO_BIN_EXE_skep"));
    let run = Run::start(&(server("one", &talk("moo"), "") + &server("two", &talk("baa"), "")));
    run.row("one");
    let output = run.output();
    assert!(output.contains("[one] moo\n") && output.contains("[two] baa\n"), "{output}");
    let two = until(|| Some(run.children("demo-server")).filter(|children| children.len() == 2));
    super::kill("KILL", two.unwrap_or_else(|| panic!("{}", run.output()))[0]);
    let died = until(|| {
        let output = run.output();
        let line = output.lines().find(|line| line.contains("warning: the server "))?;
        Some(line.to_owned())
    });
    let line = died.unwrap_or_else(|| panic!("{}", run.output()));
    assert!(line.starts_with("[one] ") || line.starts_with("[two] "), "{line}");
}
