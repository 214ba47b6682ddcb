//! The chart allows what the operator is tested with. Every test of the operator runs with `permissions::rules()` and
//! nothing more, so what they prove holds for the chart's roles, as long as the two are the same.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};
use skep_operator::permissions;

use super::{CONSOLE, SNAPSHOTS, objects};

/// The roles of a snapshot, each as its kind, its namespace and its rules.
fn roles(snapshot: &str) -> Vec<(String, Option<String>, Value)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let objects = objects(snapshot, &[]).into_iter();
    let roles = objects.filter(|object| object["rules"].is_array());
    roles
        .map(|role| {
            (text(&role["kind"]).unwrap(), text(&role["metadata"]["namespace"]), role["rules"].clone())
        })
        .collect()
}

fn role(kind: &str, namespace: Option<&str>, rules: Vec<PolicyRule>) -> (String, Option<String>, Value) {
    (kind.into(), namespace.map(Into::into), json!(rules))
}

#[test]
fn an_operator_for_the_cluster_gets_its_rules_there_and_those_of_the_migration() {
    let expected = [
        role("ClusterRole", None, permissions::migration_rules()),
        role("ClusterRole", None, permissions::rules()),
        role("Role", Some("skep-system"), permissions::election_rules()),
    ];
    assert_eq!(roles("default"), expected);
    assert_eq!(roles("everything"), expected);
}

#[test]
fn an_operator_that_migrates_nothing_has_no_permissions_for_it() {
    let expected = [
        role("ClusterRole", None, permissions::rules()),
        role("Role", Some("skep-system"), permissions::election_rules()),
    ];
    assert_eq!(roles("autoscaled"), expected);
}

#[test]
fn an_operator_for_some_namespaces_gets_the_same_rules_in_each_and_none_for_the_cluster() {
    let expected = [
        role("Role", Some("skep-system"), permissions::election_rules()),
        role("Role", Some("team-a"), permissions::rules()),
        role("Role", Some("team-b"), permissions::rules()),
    ];
    assert_eq!(roles("namespaced"), expected);
}

#[test]
fn every_role_is_bound_only_to_the_account_of_the_pods() {
    for snapshot in SNAPSHOTS {
        let objects = objects(snapshot, &[]);
        let pods = objects
            .iter()
            .find(|object| object["spec"]["template"]["spec"]["serviceAccountName"].is_string());
        let pods = pods.unwrap();
        let account = &pods["spec"]["template"]["spec"]["serviceAccountName"];
        let namespace = &pods["metadata"]["namespace"];
        let subjects = json!([{"kind": "ServiceAccount", "name": account, "namespace": namespace}]);
        let named = |object: &Value| {
            let metadata = &object["metadata"];
            (object["kind"].clone(), metadata["name"].clone(), metadata["namespace"].clone())
        };
        let mut bound: Vec<_> = objects
            .iter()
            .filter(|object| object["roleRef"].is_object())
            .map(|binding| {
                assert_eq!(binding["subjects"], subjects, "{snapshot}");
                let role = &binding["roleRef"];
                (role["kind"].clone(), role["name"].clone(), binding["metadata"]["namespace"].clone())
            })
            .collect();
        let mut roles: Vec<_> =
            objects.iter().filter(|object| object["rules"].is_array()).map(named).collect();
        let key = |(kind, name, namespace): &(Value, Value, Value)| format!("{kind}{name}{namespace}");
        bound.sort_by_key(key);
        roles.sort_by_key(key);
        assert_eq!(bound, roles, "{snapshot}");
    }
}

#[test]
fn the_console_may_read_and_nothing_else_by_an_account_of_its_own() {
    let objects = objects(CONSOLE, &[]);
    let of_console = |object: &&Value| object["metadata"]["name"] == "skep-console";
    let all: Vec<_> = objects.iter().filter(of_console).collect();
    let roles: Vec<_> = all.iter().filter(|object| object["rules"].is_array()).collect();
    assert_eq!(
        roles.iter().map(|role| &role["metadata"]["namespace"]).collect::<Vec<_>>(),
        ["team-a", "team-b"]
    );
    for role in roles {
        assert_eq!(role["rules"], json!(skep_console::rules()));
    }
    let reads = ["get", "list", "watch"].map(str::to_owned);
    assert!(skep_console::rules().iter().all(|rule| rule.verbs == reads));
    let subjects = json!([{"kind": "ServiceAccount", "name": "skep-console", "namespace": "skep-system"}]);
    for binding in all.iter().filter(|object| object["roleRef"].is_object()) {
        assert_eq!((&binding["subjects"], &binding["roleRef"]["name"]), (&subjects, &json!("skep-console")));
    }
    // Beside that, it gets tokens of its own account, and of no other.
    let tokens: Vec<_> =
        objects.iter().filter(|object| object["metadata"]["name"] == "skep-console-tokens").collect();
    let rules = json!([{
        "apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["skep-console"], "verbs": ["create"],
    }]);
    assert_eq!((&tokens[0]["kind"], &tokens[0]["rules"]), (&json!("Role"), &rules));
    assert_eq!((&tokens[1]["kind"], &tokens[1]["subjects"]), (&json!("RoleBinding"), &subjects));
    assert!(tokens.len() == 2 && tokens.iter().all(|one| one["metadata"]["namespace"] == "skep-system"));
    let variable = |deployment: &Value| {
        let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().cloned();
        env.unwrap_or_default().into_iter().find(|one| one["name"] == "SKEP_CALLS_READER")
    };
    let readers: Vec<_> = objects.iter().filter_map(variable).map(|one| one["value"].clone()).collect();
    assert_eq!(
        readers, ["system:serviceaccount:skep-system:skep-console"; 2],
        "of the console and of the operator"
    );
    // Neither Deployment selects the pods of the other.
    let deployments: Vec<_> = objects.iter().filter(|object| object["kind"] == "Deployment").collect();
    let selected = |by: &Value, pods: &Value| {
        let labels = &pods["spec"]["template"]["metadata"]["labels"];
        by["spec"]["selector"]["matchLabels"]
            .as_object()
            .unwrap()
            .iter()
            .all(|(name, value)| labels[name] == *value)
    };
    assert_eq!(deployments.len(), 2);
    assert!(!selected(deployments[0], deployments[1]) && !selected(deployments[1], deployments[0]));
}

#[test]
fn a_console_that_administers_sessions_may_read_and_end_them() {
    let expected = skep_console::rules().into_iter().chain(skep_console::session_rules()).collect();
    assert!(roles("console-login").contains(&role("ClusterRole", None, expected)));
    // Both snapshots have a role for tokens: one for calls, one for sessions.
    for snapshot in [CONSOLE, "console-login"] {
        let objects = objects(snapshot, &[]);
        let deployment =
            |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == "skep-console";
        let deployment = objects.iter().find(deployment).unwrap();
        let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
        let mut env = env.as_array().unwrap().iter();
        let administrator = env.find(|variable| variable["name"] == "SKEP_SESSIONS_ADMINISTRATOR");
        let account = (snapshot != CONSOLE).then(|| json!("system:serviceaccount:skep-system:skep-console"));
        assert_eq!(administrator.map(|variable| variable["value"].clone()), account, "{snapshot}");
        assert!(objects.iter().any(|object| object["metadata"]["name"] == "skep-console-tokens"));
    }
}
