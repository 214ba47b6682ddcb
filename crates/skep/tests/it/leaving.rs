//! A proxy that is asked to end while others still send to it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

use crate::proxy::Proxy;

const PATIENCE: Duration = Duration::from_secs(60);

impl Proxy {
    /// What a new connection is answered.
    fn health(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET /health HTTP/1.1\r\nhost: proxy\r\n\r\n")?;
        let mut answer = vec![0; 4096];
        let read = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
    }

    fn terminate(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
    }
}

#[test]
fn in_a_pod_a_proxy_goes_on_for_a_while_and_keeps_no_connection() {
    let mut proxy = Proxy::start("pod", &[("KUBERNETES_SERVICE_HOST", "192.0.2.1")]);
    assert!(!proxy.health().unwrap().contains("connection: close"));
    proxy.terminate();
    let start = Instant::now();
    let answered = loop {
        let answer = proxy.health().expect("it goes on");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        if answer.contains("connection: close") {
            break start.elapsed();
        }
        assert!(start.elapsed() < PATIENCE, "it has not heard that it is to end");
    };
    assert!(proxy.process.wait().unwrap().success());
    assert!(start.elapsed() - answered > Duration::from_secs(3), "it ended after {:?}", start.elapsed());
}

#[test]
fn elsewhere_it_ends_at_once() {
    let mut proxy = Proxy::start("process", &[]);
    proxy.terminate();
    assert!(proxy.process.wait().unwrap().success());
    assert!(!proxy.log().contains("leaving"), "{}", proxy.log());
}
