//! The metrics that Prometheus scrapes.

use std::time::Duration;

use skep_testkit::free_port;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    Server,
    backend::{Backend, Mood},
};

#[tokio::test]
async fn requests_to_backends_are_counted_with_their_failures() {
    let backend = Backend::start().await;
    let telemetry =
        "telemetry: {serviceName: test, enablePrometheusMetricsPath: true, metricsEnabled: true}\n";
    let server = Server::before(&[("a", &backend)], telemetry).await;
    let client = server.client().await;
    client.call("a_echo").await;
    backend.set(Mood::Status(500));
    client.call("a_echo").await;
    let page = client.page("/metrics").await;
    let value = |name: &str| {
        let line =
            page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {page}"));
        (line.contains("tool_name=\"echo\""), line.rsplit_once(' ').unwrap().1.to_owned())
    };
    assert_eq!(value("toolhive_vmcp_backends_discovered"), (false, "1".into()));
    assert_eq!(value("toolhive_vmcp_backend_requests_duration_seconds_count{"), (true, "2".into()));
    assert_eq!(value("toolhive_vmcp_backend_errors_total{"), (true, "1".into()));
    assert_eq!(value("toolhive_vmcp_backend_requests_total{"), (true, "2".into()));
}

#[tokio::test]
async fn the_health_and_the_circuit_of_each_backend_are_measured() {
    let (good, bad) = (Backend::start().await, Backend::start().await);
    let more = "telemetry: {serviceName: test, enablePrometheusMetricsPath: true, metricsEnabled: true}\n\
        operational: {failureHandling: {unhealthyThreshold: 1, circuitBreaker: {enabled: true, failureThreshold: 2, timeout: 1s}}}\n";
    let server = Server::before(&[("bad", &bad), ("good", &good)], more).await;
    let client = server.client().await;
    // The states that are 1, which are all that there are.
    let states = async || {
        let page = client.page("/metrics").await;
        let lines = page.lines().filter(|line| line.starts_with("skep_vmcp_backend_"));
        let mut states: Vec<String> = lines.map(|line| line.replace("skep_vmcp_backend_", "")).collect();
        states.sort();
        states
    };
    let all = |bad: (&str, &str)| -> Vec<String> {
        let line = |what: &str, backend: &str, state: &str| {
            format!("{what}{{target_workload_name=\"{backend}\",state=\"{state}\"}} 1")
        };
        vec![
            line("circuit", "bad", bad.1),
            line("circuit", "good", "closed"),
            line("health", "bad", bad.0),
            line("health", "good", "healthy"),
        ]
    };
    for (mood, expected) in [
        (Mood::Good, all(("healthy", "closed"))),
        (Mood::Status(503), all(("unhealthy", "open"))),
        (Mood::Good, all(("healthy", "closed"))),
    ] {
        bad.set(mood);
        while states().await != expected {
            // A new session has backends checked.
            server.client().await.tools().await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    server.set_backends(&[("good", &good)]);
    while states().await != [all(("", ""))[1].clone(), all(("", ""))[3].clone()] {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_port_of_its_own_serves_metrics_only() {
    let (backend, port) = (Backend::start().await, free_port());
    let telemetry = format!(
        "telemetry: {{serviceName: test, enablePrometheusMetricsPath: true, metricsEnabled: true, \
         metricsOnTransportPort: false, prometheusPort: {port}}}\n"
    );
    let server = Server::before(&[("a", &backend)], &telemetry).await;
    let client = server.client().await;
    client.call("a_echo").await;
    assert!(client.page("/metrics").await.contains("metrics are not served on this port"));
    let scrape = async || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await.map(|_| page)
    };
    let scraped = async {
        loop {
            match scrape().await {
                Ok(page) => return page,
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let page = timeout(Duration::from_secs(20), scraped).await.expect("the port has a listener");
    assert!(page.contains("toolhive_vmcp_backend_requests_total{"), "{page}");
}
