//! The administration of an authorization server in a cluster: its sessions, and the clients that have registered.
//!
//! An administrator is a ServiceAccount. It sends a token whose audience is the administration of this one object, which is verified with
//! the keys that the API server publishes; then the API server decides whether the account may `get` or `delete` the subresource
//! `sessions` of the object. So no token of a user reaches a pod, and one that reaches this pod is good for nothing else. Whoever is
//! not known to be allowed learns nothing.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use serde_json::{Value, json};
use skep_auth::{AuthenticationError, Authenticator, Identity, Pace};
use skep_config::{
    administration::{CLIENTS, GROUP, SESSIONS, SUBRESOURCE, audience, resource},
    run_config::Oidc,
};
use tokio::{sync::Semaphore, time::timeout};
use tracing::{info, warn};

use crate::{
    ConfigError,
    http::{Body, response},
    identity::Holder,
    limits,
    outbound::{Service, Trust, address},
    pod::Pod,
};

/// What an administrator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A list of sessions.
    Sessions {
        /// Which.
        which: Which,
        /// Where the list begins. Empty: at its begin.
        from: String,
    },
    /// The end of sessions. At least one member says which.
    EndSessions {
        /// Which.
        which: Which,
        /// Where to begin. Empty: at the begin of the list.
        from: String,
    },
    /// A list of clients.
    Clients {
        /// Where the list begins. Empty: at its begin.
        from: String,
    },
    /// That a client is forgotten: its registration, and that users have approved it.
    ForgetClient {
        /// Its id.
        client: String,
    },
}

/// Which sessions are meant: those with all of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// The id of the session.
    pub session: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// The id of the client.
    pub client: Option<String>,
}

/// Why a request of an administrator failed: the storage does not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the storage does not respond")]
pub struct AdministrationError;

/// What can be administered.
pub trait Administration: Send + Sync {
    /// Does what an administrator wants, and returns what there is to say about it. Each time takes a bounded part of a long list.
    fn administer<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Value, AdministrationError>>;
}

/// The endpoints for administrators.
pub struct AdministrationPage {
    server: Arc<dyn Administration>,
    authenticator: Authenticator,
    reviews: Service,
    /// The file with the token of this process for the API server.
    token: PathBuf,
    namespace: String,
    resource: &'static str,
    name: String,
    places: Semaphore,
}

/// An object, as roles name it.
#[derive(Clone, Copy, Debug)]
struct Object<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl AdministrationPage {
    /// The endpoints of an object whose pod has this environment. A process that is in no pod has none, nor has a pod that cannot verify
    /// tokens: administrators are no reason not to serve.
    pub fn in_a_pod(
        variables: &BTreeMap<String, String>,
        kind: &str,
        name: &str,
        server: Arc<dyn Administration>,
    ) -> Option<Self> {
        let pod = Pod::of_environment(variables).map_err(ConfigError::new);
        let page = pod.and_then(|pod| {
            let Some(pod) = pod else { return Ok(None) };
            let tokens = pod.tokens_for(audience(kind, &pod.namespace, name));
            let object = Object { kind, namespace: &pod.namespace, name };
            Self::new(object, &tokens, &pod.api_server, server).map(Some)
        });
        page.inspect_err(|error| warn!(%error, "sessions cannot be administered")).ok().flatten()
    }

    /// The endpoints of an object, for tokens that are validated as `oidc` says, and reviews by the API server at this address.
    pub fn of_object(
        (kind, namespace, name): (&str, &str, &str),
        oidc: &Oidc,
        api_server: &str,
        server: Arc<dyn Administration>,
    ) -> Result<Self, ConfigError> {
        Self::new(Object { kind, namespace, name }, oidc, api_server, server)
    }

    fn new(
        object: Object<'_>,
        oidc: &Oidc,
        api_server: &str,
        server: Arc<dyn Administration>,
    ) -> Result<Self, ConfigError> {
        let Object { kind, namespace, name } = object;
        let resource = resource(kind).ok_or_else(|| ConfigError::new(format!("{kind} has no sessions")))?;
        let authenticator = Authenticator::new(oidc, "", Pace::default());
        let reviews = address(&format!(
            "{}/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews",
            api_server.trim_end_matches('/')
        ));
        let trust = Trust { authorities: &oidc.ca_cert_path, ..Trust::default() };
        let reviews = reviews.and_then(|uri| Service::direct(uri, limits::REVIEW_TIME, &trust));
        Ok(Self {
            server,
            authenticator: authenticator.map_err(|error| ConfigError::new(error.to_string()))?,
            reviews: reviews.map_err(ConfigError::new)?,
            token: oidc.auth_token_file.clone().into(),
            namespace: namespace.to_owned(),
            resource,
            name: name.to_owned(),
            places: Semaphore::new(limits::ADMINISTRATION),
        })
    }

    /// Whether a path is one of its endpoints.
    pub fn serves(&self, path: &str) -> bool {
        matches!(path, SESSIONS | CLIENTS)
    }

    /// The response to a request. It is not looked at before its sender is known to be allowed.
    pub async fn respond(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response<Body> {
        self.try_to_respond(method, uri, headers)
            .await
            .unwrap_or_else(|(status, text)| response::text(status, format!("{text}\n")))
    }

    async fn try_to_respond(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, (StatusCode, &'static str)> {
        let verb = match *method {
            Method::GET => "get",
            Method::DELETE => "delete",
            _ => return Err((StatusCode::METHOD_NOT_ALLOWED, "the method must be GET or DELETE")),
        };
        let administrator = self.authenticator.identity(headers).await.map_err(|error| match error {
            AuthenticationError::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "the token cannot be verified now")
            }
            error => {
                info!(reason = %error, "unauthenticated request for sessions rejected");
                (StatusCode::UNAUTHORIZED, "a token for the sessions of this object is needed")
            }
        })?;
        if !self.is_allowed(&administrator, verb).await? {
            info!(account = administrator.subject, verb, "a request for sessions is forbidden");
            return Err((
                StatusCode::FORBIDDEN,
                "this ServiceAccount may not do that: see docs/operations.md",
            ));
        }
        let request = request(method, uri).map_err(|error| (StatusCode::BAD_REQUEST, error))?;
        let busy = (StatusCode::SERVICE_UNAVAILABLE, "too many administrators, try again");
        let _place = self.places.try_acquire().map_err(|_| busy)?;
        let failed = (StatusCode::SERVICE_UNAVAILABLE, "the storage does not respond, try again");
        let done = timeout(limits::ADMINISTRATION_TIME, self.server.administer(&request)).await;
        let done = done.map_err(|_| failed)?.map_err(|AdministrationError| failed)?;
        if !matches!(request, Request::Sessions { .. } | Request::Clients { .. }) {
            info!(
                account = administrator.subject,
                ?request,
                "an administrator has ended sessions or forgotten a client"
            );
        }
        let mut answer = response::json(StatusCode::OK, done.to_string());
        answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(answer)
    }

    /// Whether the API server lets an account do this. What cannot be decided is not allowed.
    async fn is_allowed(
        &self,
        administrator: &Identity,
        verb: &str,
    ) -> Result<bool, (StatusCode, &'static str)> {
        let unknown = (StatusCode::SERVICE_UNAVAILABLE, "the API server cannot review the right now");
        let Some((namespace, _)) = administrator
            .subject
            .strip_prefix("system:serviceaccount:")
            .and_then(|rest| rest.split_once(':'))
        else {
            return Ok(false);
        };
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": self.namespace},
            "spec": {
                "user": administrator.subject,
                "groups": [
                    "system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated",
                ],
                "resourceAttributes": {
                    "namespace": self.namespace, "verb": verb, "group": GROUP, "resource": self.resource,
                    "subresource": SUBRESOURCE, "name": self.name,
                },
            },
        });
        let failed = |error: &dyn std::fmt::Display| {
            warn!(%error, "the right to administer sessions cannot be reviewed");
            unknown
        };
        let token = fs::read_to_string(&self.token).map_err(|error| failed(&error))?;
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|error| failed(&error))?;
        authorization.set_sensitive(true);
        let holder = Holder::of(Some(administrator), IpAddr::from(Ipv4Addr::UNSPECIFIED));
        let place = self.reviews.place(Some(holder)).await.map_err(|_| unknown)?;
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, authorization)]);
        let posted = place.post(headers, Bytes::from(review.to_string())).await;
        let (status, body) = posted.map_err(|error| failed(&error))?;
        if status != StatusCode::CREATED {
            return Err(failed(&format!("the API server responds with {status}")));
        }
        let decision: Value = serde_json::from_slice(&body).map_err(|error| failed(&error))?;
        Ok(decision["status"]["allowed"] == true && decision["status"]["denied"] != true)
    }
}

/// What a request wants.
fn request(method: &Method, uri: &Uri) -> Result<Request, &'static str> {
    let (mut which, mut from) = (Which::default(), String::new());
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if value.is_empty() || value.len() > limits::ADMINISTRATION_PARAMETER {
            return Err("a parameter is empty or too long");
        }
        let given = match &*name {
            "session" => &mut which.session,
            "user" => &mut which.user,
            "client" => &mut which.client,
            "from" if from.is_empty() => {
                from = value.into_owned();
                continue;
            }
            // One that is not understood may have been meant to limit what is ended.
            _ => return Err("a parameter is not known, or there twice"),
        };
        if given.replace(value.into_owned()).is_some() {
            return Err("a parameter is not known, or there twice");
        }
    }
    let is_of_client = which.session.is_none() && which.user.is_none();
    match (uri.path(), method == Method::DELETE) {
        (CLIENTS, true) => match which {
            Which { client: Some(client), .. } if is_of_client && from.is_empty() => {
                Ok(Request::ForgetClient { client })
            }
            _ => Err("client must be there, and nothing else"),
        },
        (CLIENTS, false) if which == Which::default() => Ok(Request::Clients { from }),
        (CLIENTS, false) => Err("only from may be there"),
        (_, true) if which == Which::default() => Err("one of session, user and client must be there"),
        (_, true) => Ok(Request::EndSessions { which, from }),
        (_, false) => Ok(Request::Sessions { which, from }),
    }
}

#[cfg(test)]
mod tests;
