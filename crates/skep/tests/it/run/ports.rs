//! The ports of servers.

use skep_testkit::free_port;

use super::{DEMO, Manifests, Run, server, until};

#[test]
fn a_server_has_the_same_url_at_each_start() {
    let text = server("ports-same", DEMO, "");
    let first = Run::start(&text);
    let address = first.address("ports-same");
    drop(first);
    let second = Run::start(&(server("ports-before", DEMO, "") + &text));
    assert_eq!(second.address("ports-same"), address);
}

#[test]
fn an_occupied_port_of_a_server_is_replaced_by_another() {
    let text = server("ports-taken", DEMO, "");
    let first = Run::start(&text);
    let second = Run::start(&text);
    assert_ne!(first.address("ports-taken"), second.address("ports-taken"));
    // One of them: where another test has the usual port for a while, the first gets another one.
    let warns = |run: &Run| run.output().contains("another process has the usual port of this server");
    assert!(until(|| (warns(&first) || warns(&second)).then_some(())).is_some(), "{}", second.output());
    assert_eq!(second.client("ports-taken").tools().len(), 3);
}

#[test]
fn the_port_of_a_package_can_be_set() {
    let port = free_port();
    let manifests = Manifests::new("");
    let path = manifests.programs(&["npx"]);
    let mut command = manifests.skep_run();
    command.args(["--port", &port.to_string(), "--name", "mine", "npx://x"]).env("PATH", path);
    assert_eq!(Run::of(manifests, command).address("mine").port(), port);
}
