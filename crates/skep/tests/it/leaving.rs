//! A proxy that gets a signal to terminate while clients still send requests.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

use crate::proxy::Proxy;

const PATIENCE: Duration = Duration::from_secs(60);

impl Proxy {
    /// The response on a new connection.
    fn health(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET /health HTTP/1.1\r\nhost: proxy\r\n\r\n")?;
        let mut response = vec![0; 4096];
        let read = stream.read(&mut response)?;
        Ok(String::from_utf8_lossy(&response[..read]).into_owned())
    }

    fn terminate(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
    }
}

#[test]
fn in_a_pod_a_proxy_serves_for_a_while_without_keep_alive() {
    let mut proxy = Proxy::start("pod", &[("KUBERNETES_SERVICE_HOST", "192.0.2.1")]);
    assert!(!proxy.health().unwrap().contains("connection: close"));
    proxy.terminate();
    let start = Instant::now();
    let responded = loop {
        let response = proxy.health().expect("it still serves");
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        if response.contains("connection: close") {
            break start.elapsed();
        }
        assert!(start.elapsed() < PATIENCE, "it has not heard that it is to end");
    };
    assert!(proxy.process.wait().unwrap().success());
    assert!(start.elapsed() - responded > Duration::from_secs(3), "it ended after {:?}", start.elapsed());
}

#[test]
fn elsewhere_it_exits_at_once() {
    let mut proxy = Proxy::start("process", &[]);
    proxy.terminate();
    assert!(proxy.process.wait().unwrap().success());
    assert!(!proxy.log().contains("leaving"), "{}", proxy.log());
}
