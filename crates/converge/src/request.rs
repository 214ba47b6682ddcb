//! Requests that write.

use http::{Method, Request};
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Error, Kind, Result, Writer};

pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// Whether writes are made or only planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Writes are made.
    Write,
    /// The API server computes their results (`dryRun=All`), and stores nothing.
    Plan,
}

impl Writer {
    /// Every write goes through here, so that a planned write is never made.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> kube::Result<T> {
        let request = match self.mode() {
            Mode::Write => {
                Request::builder().uri(path).header("content-type", content).body(body.to_string())
            }
            Mode::Plan => {
                let with = if path.contains('?') { '&' } else { '?' };
                let mut body = body.clone();
                if method == Method::DELETE {
                    // With a body, the API server reads the options of a deletion from it, and ignores the query.
                    body["dryRun"] = json!(["All"]);
                }
                let uri = format!("{path}{with}dryRun=All");
                Request::builder().uri(uri).header("content-type", content).body(body.to_string())
            }
        };
        let mut request = request.map_err(kube::Error::HttpError)?.map(String::into_bytes);
        *request.method_mut() = method;
        self.client().request(request).await
    }
}

/// A PATCH request.
pub(crate) struct Patch<'a> {
    pub(crate) content: &'static str,
    pub(crate) query: &'a str,
    pub(crate) body: &'a Value,
    pub(crate) subresource: Option<&'a str>,
}

impl Patch<'_> {
    pub(crate) async fn send(
        &self,
        writer: &Writer,
        verb: &'static str,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<DynamicObject> {
        let subresource = self.subresource.map(|name| format!("/{name}")).unwrap_or_default();
        let path = format!("{}/{name}{subresource}?{}", kind.path(Some(namespace)), self.query);
        let response = writer.request(Method::PATCH, &path, self.content, self.body).await;
        response.map_err(|source| request_error(verb, kind, namespace, name, source))
    }
}

pub(crate) fn request_error(
    verb: &'static str,
    kind: Kind,
    namespace: &str,
    name: &str,
    source: kube::Error,
) -> Error {
    Error::Request { verb, kind: kind.kind, object: format!("{namespace}/{name}"), cause: Box::new(source) }
}
