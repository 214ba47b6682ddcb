//! What Prometheus sees of backends.

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
