//! `skep plan` and `skep operator --observe`, as processes.

use std::{
    fs,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use k8s_openapi::api::{core::v1::Secret, rbac::v1::PolicyRule};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::kinds::{MCPGroup, MCPServer};
use skep_operator::permissions;
use skep_testkit::{
    Namespace, User,
    fixtures::{TestGroup, TestServer},
};

/// `skep` as this user, with no settings.
fn skep(user: &User) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    command.env_clear().env("KUBECONFIG", user.kubeconfig_file()).stdin(Stdio::null());
    command
}

fn planned(test: &Namespace, user: &User, words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        skep(user).args(["plan", "-n", test.name()]).args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(test.name(), "NS");
    (status.code(), text(stdout), text(stderr))
}

async fn operator(test: &Namespace, rules: Vec<PolicyRule>) -> User {
    let user = test.user("planner");
    test.grant(&user, rules).await;
    user
}

/// An operator as a process, which ends with the test.
struct Operator {
    process: Child,
    log: std::path::PathBuf,
}

impl Operator {
    fn start(test: &Namespace, user: &User, words: &[&str]) -> Self {
        let log = test.folder().join(format!("{}.log", user.name()));
        let process = skep(user)
            .args(["operator", "--namespaces", test.name()])
            .args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"])
            .args(words)
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { process, log }
    }

    /// The lines of its log with this message.
    fn lines(&self, message: &str) -> Vec<Value> {
        let log = fs::read_to_string(&self.log).unwrap();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.map(|line| line["fields"].clone()).filter(|fields| fields["message"] == message).collect()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

async fn until(what: &str, is: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !is().await {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} is never so");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_observed(test: &Namespace, generation: i64) {
    let servers = test.api::<MCPServer>();
    until("the server is reconciled", async || {
        let status = servers.get("fetch").await.unwrap().status.unwrap_or_default();
        status.observed_generation == Some(generation)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn the_exit_code_shows_whether_there_are_changes_and_the_text_lists_them() {
    let test = skep_testkit::namespace().await;
    let user = operator(&test, permissions::rules()).await;
    assert_eq!(
        planned(&test, &user, &[]),
        (Some(0), "There are no objects to plan.\n".into(), String::new())
    );
    test.create_object(&MCPServer::test("fetch").streamable_http()).await;
    test.create_object(&MCPGroup::test("tools")).await;
    let (code, text, errors) = planned(&test, &user, &["MCPServer/fetch"]);
    assert_eq!((code, errors.as_str()), (Some(2), ""));
    assert!(text.starts_with("NS/MCPServer fetch: changed; no pod is replaced\n"), "{text}");
    assert!(text.contains("\n  create Deployment fetch\n"), "{text}");
    assert!(text.ends_with("\n1 object, 1 changed. No pod is replaced. Nothing was written.\n"), "{text}");

    let running = Operator::start(&test, &user, &[]);
    until_observed(&test, 1).await;
    drop(running);
    let settled = "NS/MCPGroup tools: nothing to do\nNS/MCPServer fetch: nothing to do\n\
                   2 objects: 2 with nothing to do. No pod is replaced. Nothing was written.\n";
    assert_eq!(planned(&test, &user, &[]), (Some(0), settled.into(), String::new()));

    let patch = Patch::Merge(json!({"spec": {"image": "registry.example/mcp:2"}}));
    test.api::<MCPServer>().patch("fetch", &PatchParams::default(), &patch).await.unwrap();
    let (code, text, _) = planned(&test, &user, &["fetch"]);
    assert_eq!(code, Some(2));
    assert!(text.starts_with("NS/MCPServer fetch: changed; its pods are replaced\n"), "{text}");
    assert!(text.contains("the spec has the new generation 2\n"), "{text}");
    let (code, json, _) = planned(&test, &user, &["--output", "json", "mcpservers/fetch"]);
    let plan: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (code, &plan["summary"]["change"], &plan["summary"]["rollsPods"]),
        (Some(2), &json!(1), &json!(1))
    );
    let writes = plan["objects"][0]["writes"].as_array().unwrap();
    let deployment = writes.iter().find(|write| write["kind"] == "Deployment").unwrap();
    assert_eq!((&deployment["verb"], &deployment["rollsPods"]), (&json!("change"), &json!(true)));
}

#[tokio::test]
async fn mistakes_and_missing_permissions_are_one_sentence() {
    let test = skep_testkit::namespace().await;
    let user = operator(&test, permissions::rules()).await;
    test.create_object(&MCPServer::test("fetch").streamable_http()).await;
    let expected = "error: MCPServer/other: not found in namespace NS\n";
    assert_eq!(planned(&test, &user, &["MCPServer/other"]), (Some(1), String::new(), expected.into()));

    let reads = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]});
    let reader = test.user("reader");
    test.grant(&reader, vec![serde_json::from_value(reads).unwrap()]).await;
    let (code, text, error) = planned(&test, &reader, &[]);
    assert_eq!((code, text.as_str(), error.lines().count()), (Some(1), "", 1), "{error}");
    assert!(error.starts_with("error: MCPServer NS/fetch: cannot "), "{error}");
    assert!(error.ends_with("run it with the operator's permissions\n"), "{error}");

    let (code, text, error) = planned(&test, &test.user("unprivileged"), &[]);
    assert_eq!((code, text.as_str(), error.lines().count()), (Some(1), "", 1), "{error}");
    assert!(error.contains("is forbidden: User \"NS-unprivileged\" cannot list resource"), "{error}");
}

#[tokio::test]
async fn the_value_of_a_secret_is_never_printed() {
    let test = skep_testkit::namespace().await;
    let user = operator(&test, permissions::rules()).await;
    let secret = json!({"metadata": {"name": "key"}, "stringData": {"token": "s3cr3t"}});
    test.create_object(&serde_json::from_value::<Secret>(secret).unwrap()).await;
    let mut server = MCPServer::test("fetch").streamable_http();
    let secrets = json!([{"name": "key", "key": "token", "targetEnvName": "TOKEN"}]);
    server.spec.secrets = serde_json::from_value(secrets).unwrap();
    test.create_object(&server).await;
    for words in [&["--output", "text"], &["--output", "json"]] {
        let (code, text, _) = planned(&test, &user, words);
        assert_eq!(code, Some(2));
        assert!(!text.contains("s3cr3t") && !text.contains("czNjcjN0"), "{text}");
    }
}

#[tokio::test]
async fn an_observer_logs_each_plan_once_and_writes_nothing() {
    let test = skep_testkit::namespace().await;
    let user = operator(&test, permissions::rules()).await;
    test.create_object(&MCPServer::test("fetch").streamable_http()).await;
    let recording = user.record();
    let observer = Operator::start(&test, &user, &["--observe", "--leader-elect"]);
    until("the server is observed", async || !observer.lines("observed").is_empty()).await;
    let label = |value: &str| Patch::Merge(json!({"metadata": {"labels": {"seen": value}}}));
    for value in ["once", "twice"] {
        // The object is planned again, and the plan is the same.
        test.api::<MCPServer>().patch("fetch", &PatchParams::default(), &label(value)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    let logged = observer.lines("observed");
    assert_eq!(logged.len(), 1, "{logged:#?}");
    let fields = (&logged[0]["kind"], &logged[0]["name"], &logged[0]["verdict"], &logged[0]["rolls_pods"]);
    assert_eq!(fields, (&json!("MCPServer"), &json!("fetch"), &json!("change"), &json!(false)));
    assert!(logged[0]["plan"].as_str().unwrap().contains("create Deployment fetch"), "{logged:#?}");

    let image = Patch::Merge(json!({"spec": {"image": "registry.example/mcp:2", "transport": "stdio"}}));
    test.api::<MCPServer>().patch("fetch", &PatchParams::default(), &image).await.unwrap();
    test.create_object(&MCPServer::test("other").streamable_http()).await;
    until("the other is observed", async || observer.lines("observed").len() > 1).await;
    drop(observer);
    let requests = recording.requests().await;
    let writes: Vec<_> = requests.iter().filter(|request| request.is_write()).collect();
    assert!(
        !writes.is_empty() && writes.iter().all(|write| write.query.contains("dryRun=All")),
        "{writes:#?}"
    );
    let deployments = test.api::<k8s_openapi::api::apps::v1::Deployment>();
    assert_eq!(deployments.list(&ListParams::default()).await.unwrap().items, []);
}
