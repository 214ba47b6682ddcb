//! An explanation agrees with the virtual server: who may call what, why not, and which backend gets the call.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;
use skep_vmcp::{Caller, Destination, Offer, Outcome, Settings};
use tokio::net::TcpStream;

use crate::{Server, backend::Backend};

/// Policies of which any may be there or not.
const POLICIES: [&str; 5] = [
    r#"permit(principal, action == Action::"call_tool", resource) when { resource has readOnlyHint && resource.readOnlyHint };"#,
    r#"permit(principal, action == Action::"call_tool", resource) when { principal.claim_team == "crm" };"#,
    r#"permit(principal == Client::"alice", action, resource);"#,
    r#"forbid(principal, action, resource == Tool::"a_delete") unless { context has arg_force && context.arg_force };"#,
    r#"forbid(principal, action, resource) when { principal has claim_blocked };"#,
];

/// How the tools of both backends are joined.
const AGGREGATIONS: [&str; 4] = [
    r#"{conflictResolution: prefix, conflictResolutionConfig: {prefixFormat: "{workload}_"}}"#,
    r#"{conflictResolution: prefix, conflictResolutionConfig: {prefixFormat: "{workload}_"}, tools: [{workload: a, filter: [read, erase], overrides: {delete: {name: erase}}}, {workload: b, excludeAll: true}]}"#,
    r"{conflictResolution: priority, conflictResolutionConfig: {priorityOrder: [b]}}",
    r"{conflictResolution: manual, tools: [{workload: b, overrides: {read: {name: look}}}]}",
];

/// The names that clients try: those of any aggregation, and others.
const NAMES: [&str; 12] = [
    "a_read", "a_write", "a_delete", "a_erase", "b_read", "b_list", "read", "write", "delete", "look",
    "list", "both",
];

fn tools(names: &[(&str, Option<bool>)]) -> Vec<Value> {
    let tool = |(name, reads): &(&str, Option<bool>)| match reads {
        Some(reads) => {
            json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": reads}})
        }
        None => json!({"name": name, "inputSchema": {"type": "object"}}),
    };
    names.iter().map(tool).collect()
}

/// A caller with a session.
struct Session {
    address: SocketAddr,
    token: String,
    id: Option<String>,
}

impl Session {
    async fn start(address: SocketAddr, token: String) -> Self {
        let mut session = Self { address, token, id: None };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let (status, headers, _) = session.post("initialize", &params).await;
        assert_eq!(status, StatusCode::OK);
        session.id = Some(headers["mcp-session-id"].to_str().unwrap().to_owned());
        session
    }

    async fn post(&self, method: &str, params: &Value) -> (StatusCode, http::HeaderMap, Value) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.token));
        if let Some(id) = &self.id {
            request = request.header("mcp-session-id", id);
        }
        let response =
            sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        (head.status, head.headers, serde_json::from_str(last.unwrap_or(&text)).unwrap_or_default())
    }
}

#[tokio::test]
async fn an_explanation_has_the_decision_the_reason_and_the_backend_of_the_virtual_server() {
    let provider = IdentityProvider::start().await;
    let offered = [
        ("a", tools(&[("read", Some(true)), ("write", Some(false)), ("delete", None)])),
        ("b", tools(&[("read", None), ("list", Some(true))])),
    ];
    let backends =
        [Backend::with_tools(offered[0].1.clone()).await, Backend::with_tools(offered[1].1.clone()).await];
    let offers = offered.map(|(name, tools)| Offer { backend: name.to_owned(), tools, ..Offer::default() });
    let callers = [
        json!({"sub": "alice"}),
        json!({"sub": "bob", "team": "crm"}),
        json!({"sub": "carol", "team": "hr", "blocked": true}),
        json!({"sub": "dave", "team": "hr"}),
    ];
    let (mut rejected, mut unknown, mut routed, mut workflows) = (0, 0, 0, 0);
    for bits in 1..1_usize << POLICIES.len() {
        let policies: Vec<&str> =
            (0..POLICIES.len()).filter(|index| bits & 1 << index != 0).map(|index| POLICIES[index]).collect();
        let aggregation = AGGREGATIONS[bits % AGGREGATIONS.len()];
        let urls = [backends[0].url(), backends[1].url()];
        let config = format!(
            "name: test\ngroupRef: test\noutgoingAuth: {{source: inline}}\naggregation: {aggregation}\n\
             incomingAuth: {{type: oidc, oidc: {{issuer: \"{}\", audience: crm, clientId: crm, insecureAllowHttp: true, \
             jwksAllowPrivateIp: true}}, authz: {{type: cedar, policies: {}}}}}\n\
             compositeTools: [{{name: both, description: d, steps: [{{id: one, type: tool, tool: a.read}}]}}]\n\
             backends: [{{name: a, url: \"{}\", transport: streamable-http}}, {{name: b, url: \"{}\", transport: streamable-http}}]\n",
            provider.issuer,
            json!(policies),
            urls[0],
            urls[1],
        );
        let settings = Settings::parse(&config).unwrap_or_else(|errors| panic!("{errors:?}\n{config}"));
        let server = Server::of(&config, None, None).await;
        for claims in &callers {
            let session = Session::start(server.address, provider.token(claims.clone())).await;
            let caller = Caller::Claims(claims.as_object().unwrap().clone());
            let case = format!("{claims} {aggregation} {policies:?}");
            let (_, _, answer) = session.post("tools/list", &json!({})).await;
            let seen = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer} {case}"));
            let seen: Vec<&str> = seen.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(settings.listed_tools(&caller, &offers).await.unwrap(), seen, "{case}");
            // Half of the names with each, so that it takes half of the time.
            for name in NAMES.into_iter().skip(bits / AGGREGATIONS.len() % 2).step_by(2) {
                backends.iter().for_each(Backend::forget);
                let params = json!({"name": name, "arguments": {"force": name.len() % 2 == 0}});
                let (status, _, answer) = session.post("tools/call", &params).await;
                let explained =
                    settings.explain_request(&caller, "tools/call", &params, &offers).await.unwrap();
                let last = explained.steps.last().map(|step| (step.middleware, &step.outcome));
                let called: Vec<(&str, String)> = ["a", "b"]
                    .into_iter()
                    .zip(&backends)
                    .flat_map(|(name, backend)| backend.called().into_iter().map(move |tool| (name, tool)))
                    .collect();
                let case = format!("{params} {case}: {answer} {explained:?}");
                match (&explained.destination, last) {
                    (None, Some((middleware, Outcome::Rejected { status: expected, message }))) => {
                        rejected += usize::from(middleware == "authorization");
                        unknown += usize::from(middleware == "catalog");
                        assert_eq!(status.as_u16(), *expected, "{case}");
                        assert_eq!(answer["error"]["message"], *message, "{case}");
                        assert!(called.is_empty(), "{case}");
                    }
                    (Some(Destination::Backend { backend, name, authentication }), _) => {
                        routed += 1;
                        assert_eq!(authentication, "without credentials");
                        assert!(answer["result"].is_object(), "{case}");
                        assert_eq!(called, [(backend.as_str(), name.clone())], "{case}");
                    }
                    (Some(Destination::Workflow { calls }), _) => {
                        workflows += 1;
                        assert_eq!(calls, &["a.read"]);
                        assert!(answer["result"].is_object(), "{case}");
                    }
                    _ => panic!("{case}"),
                }
            }
        }
        server.stop().await;
    }
    let counts = (rejected, unknown, routed, workflows);
    assert!(rejected > 150 && unknown > 50 && routed > 25 && workflows > 5, "{counts:?}");
}
