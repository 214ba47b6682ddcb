//! The demo server of skep, as a pod runs it.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

#[test]
fn it_exits_on_sigterm_while_its_input_is_open() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_skep"))
        .arg("demo-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).unwrap();
    let mut response = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut response).unwrap();
    assert_eq!(response, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");

    assert!(Command::new("kill").arg(server.id().to_string()).status().unwrap().success());
    // Killed by the signal, it would have no exit code; and as the first process of a container, it would not exit.
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
