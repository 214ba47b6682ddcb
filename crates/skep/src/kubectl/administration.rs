//! The administration of the authorization server of a proxy or virtual server.
//!
//! The proxy gets no credential of the user. It gets a token of a ServiceAccount that is good for the administration of this one object,
//! for ten minutes: who may get such a token, and what the account may do, are rights in the cluster.

use std::{collections::BTreeSet, net::SocketAddr};

use anyhow::{Context, bail};
use form_urlencoded::Serializer;
use http::{HeaderMap, Method, StatusCode, header};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PostParams},
};
use serde_json::Value;
use skep_config::administration::{SESSIONS, audience};

use super::forward::{forward, pods};
use crate::{
    cluster::{Cluster, kind_of, title},
    mcp_client::{ClientError, send},
};

/// How long the token is valid: the shortest time that Kubernetes has.
const TOKEN_SECONDS: i64 = 600;
/// How often the server is asked for the next part of a list.
const PAGES: usize = 2_000;

/// How the server is administered.
#[derive(clap::Args)]
pub(super) struct AccessArgs {
    /// The ServiceAccount that may administer sessions, in the namespace of the server or as NAMESPACE/NAME. You need the right to create
    /// tokens of it.
    #[arg(long, value_name = "ACCOUNT", default_value = "skep-sessions", global = true)]
    service_account: String,

    /// How the result is printed.
    #[arg(short, long, value_enum, default_value = "table", global = true)]
    pub(super) output: Output,
}

impl AccessArgs {
    #[cfg(test)]
    pub(super) fn service_account(&self) -> &str {
        &self.service_account
    }
}

/// How a result is printed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    Table,
    Json,
}

/// A server that is administered.
pub(super) struct Administered {
    address: SocketAddr,
    headers: HeaderMap,
    title: String,
}

impl Administered {
    pub(super) async fn connect(cluster: &Cluster, name: &str, access: &AccessArgs) -> anyhow::Result<Self> {
        let server = cluster.server(name).await?;
        let token = token(cluster, &server, &access.service_account).await?;
        let address = forward(cluster, &server).await?;
        let administered = Self::at(address, &token, title(&server))?;
        let replicas = pods(cluster, &server).await?.len();
        if replicas > 1 && administered.request(Method::GET, SESSIONS, &[]).await?["shared"] != true {
            eprintln!("warning: each of {replicas} pods has sessions of its own, and this is one of them");
        }
        Ok(administered)
    }

    fn at(address: SocketAddr, token: &str, title: String) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse()?);
        Ok(Self { address, headers, title })
    }

    /// The response to one request.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> anyhow::Result<Value> {
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let (status, _, body) = match send(self.address, method, &path, &self.headers, None).await {
            Ok(answer) => answer,
            Err(ClientError::Unavailable(why) | ClientError::Rejected(why)) => bail!("{}: {why}", self.title),
        };
        let told = String::from_utf8_lossy(&body);
        match status {
            StatusCode::OK => serde_json::from_slice(&body).with_context(|| {
                format!("{} has no authorization server, or is of an older version", self.title)
            }),
            StatusCode::NOT_FOUND => {
                bail!("{} has no authorization server, or is of an older version", self.title)
            }
            status => bail!("{} responds with {status}: {}", self.title, crate::output::plain(told.trim())),
        }
    }

    /// All of a list, whose parts have this member.
    pub(super) async fn all(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        member: &str,
    ) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut from, mut seen) = (Vec::new(), String::new(), BTreeSet::new());
        for _ in 0..PAGES {
            let mut query = query.to_vec();
            if !from.is_empty() {
                query.push(("from", &from));
            }
            let mut page = self.request(method.clone(), path, &query).await?;
            let Value::Array(part) = page[member].take() else { bail!("{}: no {member}", self.title) };
            // What changes meanwhile may come twice.
            all.extend(part.into_iter().filter(|one| seen.insert(one["id"].to_string())));
            match page["next"].as_str() {
                Some(next) => from = next.to_owned(),
                None => return Ok(all),
            }
        }
        bail!("{}: the list does not end", self.title)
    }
}

/// A token for the administration of a server.
async fn token(cluster: &Cluster, server: &DynamicObject, account: &str) -> anyhow::Result<String> {
    let (namespace, account) = account.split_once('/').unwrap_or((&cluster.namespace, account));
    let spec = TokenRequestSpec {
        audiences: vec![audience(kind_of(server), &cluster.namespace, &server.name_any())],
        expiration_seconds: Some(TOKEN_SECONDS),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), namespace);
    let issued = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let issued = issued.with_context(|| {
        format!("cannot get a token of the ServiceAccount {namespace}/{account}: see docs/operations.md, or name another --service-account")
    })?;
    Ok(issued.status.map(|status| status.token).unwrap_or_default())
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use http_body_util::Full;
    use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    /// A server that responds with these, one after another, and the requests that it has got.
    pub(crate) async fn scripted(
        answers: Vec<(StatusCode, Value)>,
    ) -> (Administered, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (requests.clone(), Arc::new(Mutex::new(answers.into_iter())));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answers) = (seen.clone(), answers.clone());
                let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    let authorization = request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned();
                    let line = format!("{} {} {authorization}", request.method(), request.uri());
                    seen.lock().unwrap().push(line);
                    let (status, body) = answers.lock().unwrap().next().unwrap();
                    let answer =
                        Response::builder().status(status).body(Full::new(Bytes::from(body.to_string())));
                    async move { answer }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        (Administered::at(address, "t", "MCPServer a".into()).unwrap(), requests)
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end_and_each_entry_once() {
        let (server, requests) = scripted(vec![
            (StatusCode::OK, json!({"sessions": [{"id": "1"}, {"id": "2"}], "next": "17 b"})),
            (StatusCode::OK, json!({"sessions": [{"id": "2"}, {"id": "3"}]})),
        ])
        .await;
        let query = [("user", "ann@example.test")];
        let all = server.all(Method::GET, SESSIONS, &query, "sessions").await.unwrap();
        assert_eq!(all, [json!({"id": "1"}), json!({"id": "2"}), json!({"id": "3"})]);
        let first = "GET /skep/sessions?user=ann%40example.test";
        let expected = [format!("{first} Bearer t"), format!("{first}&from=17+b Bearer t")];
        assert_eq!(*requests.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn what_the_server_says_about_an_error_is_shown_without_control_characters() {
        let (server, _) =
            scripted(vec![(StatusCode::FORBIDDEN, json!("no\u{1b}")), (StatusCode::NOT_FOUND, json!(""))])
                .await;
        let error = server.request(Method::GET, SESSIONS, &[]).await.unwrap_err().to_string();
        assert!(
            error.starts_with("MCPServer a responds with 403 Forbidden: ") && !error.contains('\u{1b}'),
            "{error}"
        );
        let error = server.request(Method::GET, SESSIONS, &[]).await.unwrap_err().to_string();
        assert!(error.starts_with("MCPServer a has no authorization server"), "{error}");
    }
}
