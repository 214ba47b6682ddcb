//! Many clients, slow ones, and failing ones: the others are served, and nothing is left of those that have ended.
//!
//! What is left is counted: tasks of the test's own runtime, sockets at the proxy's and the server's ports, streams that
//! the server still writes to. Times are bounds for what hangs, and are not measured.

mod backend;
mod crowd;
mod dying;
mod slow;
mod strangers;

use std::{net::SocketAddr, time::Duration};

use tokio::runtime::Handle;

/// How long anything may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is true.
pub(crate) async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_true() {
        assert!(tokio::time::Instant::now() < deadline, "{what}: {} tasks", tasks());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How many tasks live in this runtime.
fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// How many sockets are open at this address, on the side that listens: not those that wait for late packets only.
pub(crate) fn sockets(address: SocketAddr) -> usize {
    const LISTENS: &str = "0A";
    let port = format!(":{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let open = table.lines().skip(1).filter(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // The last is the inode: a socket without an owner has none.
        fields[1].ends_with(&port) && fields[3] != LISTENS && fields[9] != "0"
    });
    open.count()
}
