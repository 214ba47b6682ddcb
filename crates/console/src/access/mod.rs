//! Who may look, and at what.
//!
//! A request for data must come from the page itself: neither from the page of another site, nor by a name that leads here
//! only for the browser. Then its viewer is determined, by [`LocalAccess`] on one machine and by [`ClusterAccess`] in a
//! cluster. Nothing is read or stored for others.

mod cluster;
mod local;
mod login;
mod rights;
mod users;

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName, Method, Response, header};
use skep_gateway::http::Body;

use crate::{
    Key,
    objects::{Child, Object},
};
pub use cluster::ClusterAccess;
pub use local::LocalAccess;
pub(crate) use login::CALLBACK;
pub use login::Login;
pub(crate) use rights::SessionRight;
use users::User;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// A header that a page of another origin cannot send without the consent of this one.
pub(crate) const CONSOLE: HeaderName = HeaderName::from_static("x-skep-console");

/// How viewers are let in.
pub enum Access {
    /// On one machine.
    Local(LocalAccess),
    /// In a cluster.
    Cluster(Box<ClusterAccess>),
}

/// Who looks.
#[derive(Clone)]
pub(crate) enum Viewer {
    /// The user who started it. They may see everything.
    Local,
    /// A user of the cluster, who may see what the API server lets them get.
    User(Arc<User>),
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// It was sent to another name, or by the page of another site.
    Foreign,
    /// It has no credential, or one that is not valid.
    Unauthenticated,
    /// Too many tokens are being verified.
    Busy,
}

impl Access {
    /// Rejects requests that a name of another site has led here: its pages could read the responses. In a cluster, the
    /// names of the console are not known, and no page of another name has its cookie.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Rejected> {
        match self {
            Self::Local(access) => access.check_host(headers),
            Self::Cluster(_) => Ok(()),
        }
    }

    /// Rejects requests that the page itself has not sent.
    pub(crate) fn check_origin(&self, method: &Method, headers: &HeaderMap) -> Result<(), Rejected> {
        self.check_host(headers)?;
        check_origin(method, headers)
    }

    /// Who has sent a request.
    pub(crate) async fn viewer(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Viewer, Rejected> {
        match self {
            Self::Local(access) => access.check_token(headers).map(|()| Viewer::Local),
            Self::Cluster(access) => access.user(headers, peer).await.map(Viewer::User),
        }
    }

    /// Signs a user in, by the token in this body.
    pub(crate) async fn sign_in(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        peer: IpAddr,
    ) -> Option<Response<Body>> {
        match self {
            Self::Local(_) => None,
            Self::Cluster(access) => Some(access.sign_in(headers, body, peer).await),
        }
    }

    /// Signs the sender of these headers out.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        match self {
            Self::Local(_) => None,
            Self::Cluster(access) => Some(access.sign_out(headers)),
        }
    }

    /// Begins a login at the provider, if there is one.
    pub(crate) async fn begin_login(&self, peer: IpAddr) -> Option<Response<Body>> {
        match self {
            Self::Local(_) => None,
            Self::Cluster(access) => access.begin_login(peer).await,
        }
    }

    /// Ends the login to which the provider has sent the browser back with this query.
    pub(crate) async fn finish_login(
        &self,
        headers: &HeaderMap,
        query: &str,
        peer: IpAddr,
    ) -> Option<Response<Body>> {
        match self {
            Self::Local(_) => None,
            Self::Cluster(access) => access.finish_login(headers, query, peer).await,
        }
    }

    /// The host of the provider where users can log in.
    pub(crate) fn provider(&self) -> Option<&str> {
        match self {
            Self::Local(_) => None,
            Self::Cluster(access) => access.provider(),
        }
    }

    /// `local` or `cluster`.
    pub(crate) fn mode(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Cluster(_) => "cluster",
        }
    }
}

impl Viewer {
    /// The name of the user.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Local => "",
            Self::User(user) => &user.name,
        }
    }

    /// Whether they may see this object.
    pub(crate) async fn may_see(&self, key: &Key) -> bool {
        match self {
            Self::Local => true,
            Self::User(user) => user.rights.may_get(key).await,
        }
    }

    /// Whether they may see its calls.
    pub(crate) async fn may_see_calls(&self, key: &Key) -> bool {
        match self {
            Self::Local => true,
            Self::User(user) => user.rights.may_get_calls(key).await,
        }
    }

    /// Whether they may do this with the sessions of its users.
    pub(crate) async fn may_administer(&self, key: &Key, right: SessionRight) -> bool {
        match self {
            Self::Local => true,
            Self::User(user) => user.rights.may_administer(key, right).await,
        }
    }

    /// Whether they may see what was created for an object.
    pub(crate) async fn may_see_child(&self, owner: &Key, child: &Child) -> bool {
        match self {
            Self::Local => true,
            Self::User(user) => user.rights.may_get_child(owner, child).await,
        }
    }

    /// Whether they may see the events of a namespace.
    pub(crate) async fn may_list_events(&self, namespace: &str) -> bool {
        match self {
            Self::Local => true,
            Self::User(user) => user.rights.may_list_events(namespace).await,
        }
    }

    /// Whether they may see a pod.
    pub(crate) async fn may_get_pod(&self, namespace: &str, name: &str) -> bool {
        match self {
            Self::Local => true,
            Self::User(user) => user.rights.may_get_pod(namespace, name).await,
        }
    }

    /// Those of these objects that they may see.
    pub(crate) async fn visible(&self, objects: Vec<Arc<Object>>) -> Vec<Arc<Object>> {
        let mut visible = Vec::with_capacity(objects.len());
        for object in objects {
            if self.may_see(&object.key).await {
                visible.push(object);
            }
        }
        visible
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::AUTHORIZATION)?.strip_prefix("Bearer ")
}

fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), Rejected> {
    let is_other_site =
        text(headers, &FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none");
    let host = text(headers, &header::HOST).unwrap_or_default();
    let is_own = |origin: &str| {
        let origin_host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        origin_host.is_some_and(|origin| origin.eq_ignore_ascii_case(host))
    };
    let is_other_origin = text(headers, &header::ORIGIN).is_some_and(|origin| !is_own(origin));
    // Data is for the scripts of the page: nobody opens it as a page of its own.
    let is_page = text(headers, &FETCH_MODE) == Some("navigate");
    let changes = !matches!(*method, Method::GET | Method::HEAD);
    if is_other_site || is_other_origin || is_page || (changes && !headers.contains_key(CONSOLE)) {
        return Err(Rejected::Foreign);
    }
    Ok(())
}
