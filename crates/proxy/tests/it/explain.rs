//! An explanation agrees with the proxy.

use http::StatusCode;
use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use serde_json::{Map, Value, json};
use skep_config::RunConfig;
use skep_proxy::{Caller, Outcome, explain_request, listed_tools};
use skep_testkit::{IdentityProvider, Signing};

use crate::fixture::{Answer, Fixture, Server, call, result};

const TOOLS: [&str; 4] = ["read", "write", "delete", "list"];

/// The parts of a policy, of which the first restricts nothing. Some conditions cannot be evaluated for some requests.
const PRINCIPALS: [&str; 2] = ["principal", r#"principal == Client::"alice""#];
const ACTIONS: [&str; 4] = [
    "action",
    r#"action == Action::"call_tool""#,
    r#"action == Action::"get_prompt""#,
    r#"action == Action::"read_resource""#,
];
const RESOURCES: [&str; 5] = [
    "resource",
    r#"resource == Tool::"read""#,
    r#"resource == Tool::"delete""#,
    r#"resource == Prompt::"greet""#,
    r#"resource == Resource::"file____a""#,
];
const CONDITIONS: [&str; 6] = [
    "",
    r#"when { principal has claim_team && principal.claim_team == "crm" }"#,
    r#"when { principal.claim_team == "crm" }"#,
    "when { principal has claim_blocked }",
    "unless { context has arg_force && context.arg_force }",
    "when { context.arg_force }",
];

/// The first of these half of the time.
fn part(parts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(parts[0]), select(parts)]
}

fn policy() -> impl Strategy<Value = String> {
    // Most permit, and many permit much, or nearly everything would be rejected.
    let effect = prop_oneof![4 => Just("permit"), 1 => Just("forbid")];
    (effect, part(&PRINCIPALS), part(&ACTIONS), part(&RESOURCES), part(&CONDITIONS)).prop_map(
        |(effect, principal, action, resource, condition)| {
            format!("{effect}({principal}, {action}, {resource}) {condition};")
        },
    )
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Missing,
    Expired,
    NotYetValid,
    OtherAudience,
    OtherIssuer,
    OtherKey,
}

const FAULTS: [Fault; 6] = [
    Fault::Missing,
    Fault::Expired,
    Fault::NotYetValid,
    Fault::OtherAudience,
    Fault::OtherIssuer,
    Fault::OtherKey,
];

/// A request, and who sends it.
#[derive(Clone, Debug)]
struct Attempt {
    claims: Value,
    fault: Fault,
    method: &'static str,
    params: Value,
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let claims = (select(vec!["alice", "bob"]), select(vec!["", "crm", "hr"]), any::<bool>()).prop_map(
        |(subject, team, is_blocked)| {
            let mut claims = json!({"sub": subject});
            if !team.is_empty() {
                claims["team"] = json!(team);
            }
            if is_blocked {
                claims["blocked"] = json!(true);
            }
            claims
        },
    );
    let fault = prop_oneof![4 => Just(Fault::None), 1 => select(FAULTS.to_vec())];
    let arguments = select(vec![json!({}), json!({"force": true}), json!({"force": false})]);
    let tools = select(vec!["read", "write", "delete", "list", "fetch"]);
    let request = prop_oneof![
        4 => (tools, arguments.clone())
            .prop_map(|(name, arguments)| ("tools/call", json!({"name": name, "arguments": arguments}))),
        1 => (select(vec!["greet", "leave"]), arguments)
            .prop_map(|(name, arguments)| ("prompts/get", json!({"name": name, "arguments": arguments}))),
        1 => select(vec!["file:///a", "file:///b"]).prop_map(|uri| ("resources/read", json!({"uri": uri}))),
        1 => select(vec![json!({"name": "greet"}), json!({"name": "leave"}), json!({"uri": "file:///a"}), json!({})])
            .prop_map(|named| ("completion/complete", json!({"ref": named}))),
    ];
    (claims, fault, request).prop_map(|(claims, fault, (method, params))| Attempt {
        claims,
        fault,
        method,
        params,
    })
}

impl Attempt {
    /// The token of its caller, if it has one.
    fn token(&self, provider: &IdentityProvider, other_key: &Signing) -> Option<String> {
        let with = |changes: Value| {
            let mut claims = self.claims.clone();
            claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            claims
        };
        Some(provider.token(match self.fault {
            Fault::Missing => return None,
            Fault::None => self.claims.clone(),
            Fault::Expired => with(json!({"exp": 1_000_000_000})),
            Fault::NotYetValid => with(json!({"nbf": 10_000_000_000_u64, "exp": 10_000_003_600_u64})),
            Fault::OtherAudience => with(json!({"aud": "other"})),
            Fault::OtherIssuer => with(json!({"iss": "https://evil.example"})),
            Fault::OtherKey => {
                let claims = provider.claims(self.claims.clone());
                return Some(other_key.token(&other_key.header(), &claims));
            }
        }))
    }
}

/// The middlewares of a proxy with these policies and this filter.
fn middlewares(oidc: &Value, policies: &[String], filter: &Value) -> Value {
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    json!([
        {"type": "auth", "parameters": {"oidc_config": oidc}},
        {"type": "tool-filter", "parameters": filter},
        {"type": "tool-call-filter", "parameters": filter},
        {"type": "authorization", "parameters": {"config_data": document}},
    ])
}

/// What the explanation says: the middleware, the status and the message of a rejection.
async fn explained(
    config: &RunConfig,
    caller: &Caller,
    attempt: &Attempt,
) -> Option<(&'static str, u16, String)> {
    let steps = explain_request(config, caller, attempt.method, &attempt.params).await.unwrap();
    steps.into_iter().find_map(|step| match step.outcome {
        Outcome::Rejected { status, message } => Some((step.middleware, status, message)),
        Outcome::Passes | Outcome::NotTried | Outcome::Undecided => None,
    })
}

/// The reason in a rejection of the proxy: of JSON-RPC, of OAuth, or as text.
fn reason(answer: &Answer) -> String {
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let texts = [&json["error"]["message"], &json["error_description"], &json["error"]];
    let text = texts.into_iter().find_map(Value::as_str).map(str::to_owned);
    text.unwrap_or_else(|| String::from_utf8_lossy(&answer.body).trim().to_owned())
}

/// How many requests passed, and how many the authentication and the rest rejected.
#[derive(Default)]
struct Counts {
    passed: usize,
    unauthenticated: usize,
    denied: usize,
}

struct World {
    provider: IdentityProvider,
    other_key: Signing,
    server: Server,
}

impl World {
    async fn start() -> Self {
        let tools: Vec<_> = TOOLS.iter().map(|name| json!({"name": name})).collect();
        let server = Server::start(move |request| result(request, json!({"tools": tools}))).await;
        // A forger knows the id of the real key.
        let provider = IdentityProvider::start().await;
        let id = provider.public()["kid"].as_str().unwrap().to_owned();
        Self { provider, other_key: Signing::ecdsa(id), server }
    }

    async fn check(&self, policies: &[String], filter: &Value, attempts: &[Attempt], counts: &mut Counts) {
        let middlewares = middlewares(&self.provider.oidc(json!({})), policies, filter);
        let fixture = Fixture::new(&self.server, middlewares.clone()).await;
        let config =
            json!({"name": "files", "transport": "streamable-http", "middleware_configs": middlewares});
        let config = RunConfig::parse(&config.to_string()).unwrap();
        for attempt in attempts {
            let what = format!("{attempt:?} {policies:?} {filter}");
            let token = attempt.token(&self.provider, &self.other_key);
            let bearer = token.as_ref().map(|token| format!("Bearer {token}"));
            let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
            let answer = fixture.post(&headers, &call(attempt.method, attempt.params.clone())).await;
            let caller = token.clone().map_or(Caller::Anonymous, Caller::Token);
            let rejection = explained(&config, &caller, attempt).await;
            match &rejection {
                None => {
                    counts.passed += 1;
                    assert_eq!(answer.status, StatusCode::OK, "{what}");
                }
                Some((middleware, status, message)) => {
                    match *middleware {
                        "auth" => counts.unauthenticated += 1,
                        _ => counts.denied += 1,
                    }
                    assert_eq!(
                        (answer.status.as_u16(), reason(&answer)),
                        (*status, message.clone()),
                        "{what}"
                    );
                    assert_eq!(*middleware == "auth", *status == 401, "{what}");
                }
            }
            let is_valid = matches!(attempt.fault, Fault::None);
            assert_eq!(answer.status != StatusCode::UNAUTHORIZED, is_valid, "{what}");
            if is_valid {
                // The claims alone lead to the same decision as the token that has them.
                let caller = Caller::Claims(claims(&attempt.claims));
                assert_eq!(explained(&config, &caller, attempt).await, rejection, "{what}");
                let listed = fixture.post(&headers, &call("tools/list", json!({}))).await.json();
                let seen = listed["result"]["tools"].as_array().unwrap().iter();
                let seen: Vec<_> = seen.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
                let expected = listed_tools(&config, &caller, &TOOLS.map(Into::into)).await.unwrap();
                assert_eq!(expected, seen, "{what}");
            }
        }
        fixture.end().await;
    }
}

fn claims(claims: &Value) -> Map<String, Value> {
    claims.as_object().unwrap().clone()
}

#[test]
fn an_explanation_has_the_decision_and_the_reason_of_the_proxy() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::start());
    let filter = select(vec![
        json!({}),
        json!({"filter_tools": ["read", "delete"]}),
        json!({"filter_tools": ["fetch", "write"], "tools_override": {"read": {"name": "fetch"}}}),
    ]);
    let cases = (vec(policy(), 1..5), filter, vec(attempt(), 8));
    let counts = std::cell::RefCell::new(Counts::default());
    let config = Config { cases: 40, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&cases, |(policies, filter, attempts)| {
            runtime.block_on(world.check(&policies, &filter, &attempts, &mut counts.borrow_mut()));
            Ok(())
        })
        .unwrap();
    // Every kind of answer was among them. Of each, there are dozens.
    let Counts { passed, unauthenticated, denied } = counts.into_inner();
    assert!(passed > 5 && unauthenticated > 5 && denied > 5, "{passed} {unauthenticated} {denied}");
}
