//! Requests to the API server, from its own audit log: exact, complete, and the same for a client in the test and for a separate
//! program.

mod log;
mod writes;

use std::{fmt, path::Path};

use serde::Deserialize;
use serde_json::Value;

use log::Log;
pub(crate) use log::{LOG, create, record_end};
pub use writes::{LastWrite, LastWrites};

/// Everything is logged: writes when they start, and with request and response when they are complete; a watch when it starts; the rest
/// when it is complete.
pub(crate) const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
  - level: None
    users: [system:apiserver]
  - level: RequestResponse
    omitManagedFields: true
    verbs: [create, update, patch, delete, deletecollection]
  - level: Metadata
    omitStages: [RequestReceived]
"#;

/// One request to the API server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The verb, as RBAC knows it: get, list, watch, create, update, patch, delete or deletecollection.
    pub verb: String,
    /// The resource in plural, for example `deployments`; the path for what is not a resource.
    pub resource: String,
    /// The subresource, for example `status`, or nothing.
    pub subresource: String,
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name of the object, or nothing for lists.
    pub name: String,
    /// The query, with the field manager of an apply.
    pub query: String,
    /// The `User-Agent`, or nothing.
    pub agent: String,
    /// The HTTP status of the response; 0 for an open watch.
    pub code: u16,
    /// The body of writes: an object, or the patch as it was on the wire.
    pub body: Option<Value>,
}

impl Request {
    /// Whether it may change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        Ok(())
    }
}

/// The requests of one user since the recording started.
pub struct Recording {
    log: Log,
    user: String,
}

impl Recording {
    pub(crate) fn start(folder: &Path, user: &str) -> Self {
        Self { log: Log::start(folder), user: user.into() }
    }

    /// All requests until now, in the order in which they were answered.
    pub async fn requests(&self) -> Vec<Request> {
        let user = format!("\"username\":\"{}\"", self.user);
        let lines = self.log.lines().await;
        let events = lines.iter().filter(|line| line.contains(&user));
        let events = events.filter_map(|line| serde_json::from_str::<Event>(line).ok());
        let of_user = events.filter(|event| event.user.username == self.user);
        of_user.filter(Event::counts).map(Event::into_request).collect()
    }

    /// The requests until now that may have changed something, as lines such as `patch deployments/status fetch`.
    pub async fn writes(&self) -> Vec<String> {
        let requests = self.requests().await;
        requests.iter().filter(|request| request.is_write()).map(ToString::to_string).collect()
    }

    /// How many requests there were with this verb on this resource and subresource.
    pub async fn count(&self, verb: &str, resource: &str, subresource: &str) -> usize {
        let requests = self.requests().await;
        let same = |r: &&Request| r.verb == verb && r.resource == resource && r.subresource == subresource;
        requests.iter().filter(same).count()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    #[serde(default)]
    user_agent: String,
    user: EventUser,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_object: Option<Value>,
    response_object: Option<Value>,
}

#[derive(Deserialize)]
struct EventUser {
    username: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

impl Event {
    /// A watch counts when it starts, anything else when it is complete.
    fn counts(&self) -> bool {
        self.stage == if self.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" }
    }

    fn object(&self) -> ObjectRef {
        self.object_ref.clone().unwrap_or_default()
    }

    fn into_request(self) -> Request {
        let object = self.object();
        let (path, query) = self.uri.split_once('?').unwrap_or((&self.uri, ""));
        Request {
            resource: if object.resource.is_empty() { path.into() } else { object.resource },
            subresource: object.subresource,
            namespace: object.namespace,
            name: object.name,
            query: query.into(),
            agent: self.user_agent,
            code: self.response_status.and_then(|status| status.code).unwrap_or_default(),
            body: self.request_object,
            verb: self.verb,
        }
    }
}
