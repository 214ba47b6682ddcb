//! A fake of an OpenTelemetry collector, which decodes what it receives.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::Response;
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::{metric::Data, number_data_point},
    trace::v1::Span,
};
use prost::Message;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, rustls};

use crate::fixture::{ReceivedRequest, Server, status};

pub(crate) type Attributes = BTreeMap<String, String>;

pub(crate) struct Collector(pub(crate) Server);

/// A value of a metric, with its attributes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) attributes: Attributes,
    /// The sum of a counter, or how many values a histogram has.
    pub(crate) count: f64,
    pub(crate) bounds: Vec<f64>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        Self::with_script(|_| status(200)).await
    }

    pub(crate) async fn with_script(
        script: impl Fn(&ReceivedRequest) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        Self(Server::start(script).await)
    }

    pub(crate) fn endpoint(&self) -> String {
        self.0.address.to_string()
    }

    fn bodies(&self, path: &str) -> Vec<Bytes> {
        self.0
            .requests()
            .into_iter()
            .filter(|request| request.path.ends_with(path))
            .map(|request| request.body)
            .collect()
    }

    fn traces(&self) -> Vec<ExportTraceServiceRequest> {
        let decode = |body: Bytes| ExportTraceServiceRequest::decode(body).unwrap();
        self.bodies("/v1/traces").into_iter().map(decode).collect()
    }

    fn metrics(&self) -> Vec<ExportMetricsServiceRequest> {
        let decode = |body: Bytes| ExportMetricsServiceRequest::decode(body).unwrap();
        self.bodies("/v1/metrics").into_iter().map(decode).collect()
    }

    /// The spans in the order in which they were sent.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let resources = self.traces().into_iter().flat_map(|request| request.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// The resource that sent them.
    pub(crate) fn resource(&self) -> Attributes {
        let request = self.traces().into_iter().next().unwrap();
        attributes(&request.resource_spans[0].resource.as_ref().unwrap().attributes)
    }

    /// The values of a metric, as of the last time that they were sent.
    pub(crate) fn points(&self, name: &str) -> Vec<Point> {
        let Some(last) = self.metrics().into_iter().next_back() else { return Vec::new() };
        let scopes = last.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
        let named = scopes.flat_map(|scope| scope.metrics).find(|metric| metric.name == name);
        match named.and_then(|metric| metric.data) {
            Some(Data::Sum(sum)) => sum
                .data_points
                .iter()
                .map(|point| Point {
                    attributes: attributes(&point.attributes),
                    count: match point.value {
                        Some(number_data_point::Value::AsInt(value)) => value as f64,
                        Some(number_data_point::Value::AsDouble(value)) => value,
                        None => 0.0,
                    },
                    bounds: Vec::new(),
                })
                .collect(),
            Some(Data::Histogram(histogram)) => histogram
                .data_points
                .iter()
                .map(|point| Point {
                    attributes: attributes(&point.attributes),
                    count: point.count as f64,
                    bounds: point.explicit_bounds.clone(),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// All that it received, headers and bodies, as far as it is text.
    pub(crate) fn text(&self) -> String {
        let requests = self.0.requests();
        requests
            .iter()
            .map(|request| format!("{:?} {}", request.headers, String::from_utf8_lossy(&request.body)))
            .collect()
    }
}

pub(crate) fn attributes(list: &[KeyValue]) -> Attributes {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pair = |pair: &KeyValue| {
        let value = pair.value.as_ref().and_then(|value| value.value.as_ref());
        (pair.key.clone(), value.map(text).unwrap_or_default())
    };
    list.iter().map(pair).collect()
}

/// TLS in front of a server, with a self-signed certificate.
pub(crate) async fn with_tls(server: SocketAddr) -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = tls.accept(stream).await else { return };
                let mut inner = TcpStream::connect(server).await.unwrap();
                tokio::io::copy_bidirectional(&mut stream, &mut inner).await.ok();
            });
        }
    });
    (address, made.cert.pem())
}
