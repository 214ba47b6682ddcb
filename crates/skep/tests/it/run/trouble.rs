//! Servers that do not do well, and what is said of them.

use std::net::TcpListener;

use super::{
    Client, DEMO, Run,
    life::{fake_remote, own_address, quickstart},
    server, until,
};

#[test]
fn without_a_network_the_demo_works_and_the_table_says_what_is_wrong_with_the_other() {
    let run = Run::start(&quickstart("https://nowhere.invalid/mcp"));
    assert!(run.row("demo").ends_with("Ready    echo, add, time"), "{}", run.output());
    assert!(run.row("docs").ends_with("streamable-http  Failed   -"), "{}", run.output());
    run.says(
        "MCPRemoteProxy docs: https://nowhere.invalid/mcp is unreachable: cannot resolve nowhere.invalid: check the \
         network and the name; retrying\n",
    );
    assert_eq!(run.client("demo").tools().len(), 3);
    let output = run.output();
    assert!(!output.contains("warning:"), "what the table says is not told twice: {output}");
}

#[test]
fn a_remote_server_that_comes_back_is_found_by_itself() {
    let port = TcpListener::bind((own_address(), 0)).unwrap().local_addr().unwrap().port();
    let run = Run::start(&quickstart(&format!("http://{}:{port}/mcp", own_address())));
    assert!(run.row("docs").contains("Failed"), "{}", run.output());
    fake_remote(port);
    run.says("streamable-http  Ready    search\n");
    assert_eq!(Client::new(run.address("docs")).tools(), ["search"]);
}

#[test]
fn a_server_that_exits_at_once_is_reported_with_its_output() {
    let run =
        Run::start(&(server("sick", "sh -c 'echo no token >&2; exit 3'", "") + &server("demo", DEMO, "")));
    run.says("[sick] no token\n");
    run.says("MCPServer sick: it exits right after its start: see its output above; retrying");
    assert_eq!(run.client("demo").tools().len(), 3);
}

#[test]
fn an_http_server_that_exits_at_once_is_reported_as_well() {
    let spec = "  transport: streamable-http";
    let run =
        Run::start(&(server("sick", "sh -c 'echo no port >&2; exit 3'", spec) + &server("demo", DEMO, "")));
    run.says("[sick] no port\n");
    run.says("MCPServer sick: it exits right after its start: see its output above; retrying");
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
