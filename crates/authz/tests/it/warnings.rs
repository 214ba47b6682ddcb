//! Warnings about policies that can be enforced.

use serde_json::json;
use skep_authz::{Cedar, check};

use crate::fixture::{EVERYTHING, cedar};

fn warnings(cedar: &Cedar) -> Vec<String> {
    check(cedar).unwrap().iter().map(ToString::to_string).collect()
}

/// The one warning about the second of two policies.
fn warning(policy: &str) -> String {
    let mut warnings = warnings(&cedar([EVERYTHING, policy]));
    assert!(warnings.len() < 2, "{policy}: {warnings:#?}");
    let warning = warnings.pop().unwrap_or_default();
    warning.trim_start_matches("policies[1]: ").into()
}

#[test]
fn a_policy_that_never_applies_is_warned_about() {
    let lists = "never occurs in a request: a list shows the items that";
    let actions = "never occurs in a request: use call_tool, get_prompt or read_resource";
    for (head, expected) in [
        (
            r#"principal, action == Action::"list_tools", resource"#,
            format!("Action::\"list_tools\" {lists} call_tool is permitted for"),
        ),
        (
            r#"principal, action in [Action::"call_tool", Action::"list_prompts"], resource"#,
            format!("Action::\"list_prompts\" {lists} get_prompt is permitted for"),
        ),
        (r#"principal, action == Action::"callTool", resource"#, format!("Action::\"callTool\" {actions}")),
        (
            r#"principal, action == App::Action::"call_tool", resource"#,
            format!("App::Action::\"call_tool\" {actions}"),
        ),
        (r#"principal, action in Action::"write", resource"#, format!("Action::\"write\" {actions}")),
        (
            r#"principal, action, resource == FeatureType::"tool""#,
            "the resource is never a FeatureType: use Tool, Prompt, Resource".into(),
        ),
        (
            "principal, action, resource is File",
            "the resource is never a File: use Tool, Prompt, Resource".into(),
        ),
        (
            r#"principal, action, resource in Folder::"a""#,
            "no resource is in Folder::\"a\": resources are in MCP::\"<server>\"".into(),
        ),
        (
            r#"principal == User::"alice", action, resource"#,
            "the principal is never a User: use Client".into(),
        ),
        (
            r#"principal in Group::"dev", action, resource"#,
            "no caller is in Group::\"dev\": callers are in THVGroup::\"…\"".into(),
        ),
        (
            r#"principal is Client in Group::"dev", action, resource"#,
            "no caller is in Group::\"dev\": callers are in THVGroup::\"…\"".into(),
        ),
        (
            r#"principal, action == Action::"call_tool", resource == Prompt::"p""#,
            "it never applies: call_tool acts on a Tool, not on a Prompt".into(),
        ),
        (
            r#"principal, action in [Action::"get_prompt", Action::"call_tool"], resource is Resource"#,
            "it never applies: get_prompt acts on a Prompt, not on a Resource".into(),
        ),
    ] {
        assert_eq!(warning(&format!("permit({head});")), expected);
    }
}

#[test]
fn a_condition_that_is_never_true_is_warned_about() {
    for (condition, expected) in [
        (
            "context has arg_n && context.arg_n < 5",
            "to compare context.arg_n with 5 fails, as numbers are decimals: use context.arg_n.lessThan(decimal(\"5.0\"))",
        ),
        (
            "context has arg_n && 5 <= context.arg_n",
            "to compare context.arg_n with 5 fails, as numbers are decimals: use context.arg_n.greaterThanOrEqual(decimal(\"5.0\"))",
        ),
        (
            "principal.claim_age > -1",
            "to compare principal.claim_age with -1 fails, as numbers are decimals: use principal.claim_age.greaterThan(decimal(\"-1.0\"))",
        ),
        (
            "principal.claim_age == 18",
            "principal.claim_age never equals 18, as numbers are decimals: use principal.claim_age == decimal(\"18.0\")",
        ),
        ("context.user == \"a\"", "context.user never exists, and reading it denies the request"),
        ("principal.email == \"a\"", "principal.email never exists, and reading it denies the request"),
        ("resource.owner == \"a\"", "resource.owner never exists, and reading it denies the request"),
        (
            "context.arg_a == \"b\"",
            "it reads context.arg_a without `context has arg_a`: requests without that argument are denied, and the items of lists have none",
        ),
        (
            "action == Action::\"list_tools\"",
            "Action::\"list_tools\" never occurs in a request: a list shows the items that call_tool is permitted for",
        ),
        (
            "[Action::\"x\"] == [] || action in [Action::\"x\"]",
            "Action::\"x\" never occurs in a request: use call_tool, get_prompt or read_resource",
        ),
        ("resource is File", "the resource is never a File: use Tool, Prompt, Resource"),
        ("!(principal in Team::\"a\")", "no caller is in Team::\"a\": callers are in THVGroup::\"…\""),
    ] {
        assert_eq!(
            warning(&format!("permit(principal, action, resource) when {{ {condition} }};")),
            expected
        );
    }
}

#[test]
fn correct_policies_have_no_warnings() {
    for policy in [
        EVERYTHING,
        r#"permit(principal in THVGroup::"dev", action in [Action::"call_tool", Action::"get_prompt"], resource is Tool in MCP::"web");"#,
        r#"permit(principal == Client::"alice", action == Action::"read_resource", resource) when { resource.uri like "file:*" };"#,
        r#"forbid(principal, action, resource) when { resource has destructiveHint && resource.destructiveHint };"#,
        r#"permit(principal, action, resource) when { context has arg_n && context.arg_n.lessThan(decimal("5.0")) };"#,
        r#"permit(principal, action, resource) when { principal.claim_sub == context.claim_sub && 1 + 1 == 2 };"#,
        r#"permit(principal, action, resource) when { context has claim_a.b && context.claim_a.b == 5 };"#,
        r#"permit(principal, action, resource in Backend::"b") when { action.operation == "call_tool" };"#,
        r#"permit(principal, action, resource) when { principal has claimset_scope && principal.claimset_scope.contains("x") };"#,
        r#"permit(principal, action, resource) when { {"<": 1, "left": context has other} has left };"#,
    ] {
        assert_eq!(warning(policy), "", "{policy}");
    }
}

#[test]
fn names_in_entities_are_known() {
    let entities = json!([
        {"uid": {"type": "Action", "id": "call_tool"}, "parents": [{"type": "Action", "id": "write"}]},
        {"uid": {"type": "Tool", "id": "search"}, "attrs": {"owner": "a"}, "parents": [{"type": "Folder", "id": "a"}]},
        {"uid": {"type": "Team", "id": "x"}, "parents": [{"type": "Org", "id": "o"}]},
    ]);
    let policies = cedar([
        r#"permit(principal in Team::"a", action in Action::"write", resource in Folder::"a");"#,
        r#"permit(principal in Org::"o", action, resource) when { resource.owner == "a" };"#,
    ]);
    let cedar =
        Cedar { entities_json: entities.to_string(), group_entity_type: "Team".into(), ..policies.clone() };
    assert_eq!(warnings(&cedar), Vec::<String>::new());
    assert_eq!(warnings(&policies).len(), 5);
}

#[test]
fn a_document_that_permits_nothing_is_warned_about() {
    let warnings = warnings(&cedar(["forbid(principal, action, resource);"]));
    assert_eq!(warnings, ["policies: none of them permits anything, so everything is denied"]);
}

#[test]
fn warnings_have_the_order_and_the_path_of_their_policies() {
    let both = r#"permit(principal is A, action, resource); permit(principal is B, action, resource is C);"#;
    let warnings = warnings(&cedar([both, "permit(principal is D, action, resource);"]));
    let expected = [
        "policies[0], policy 0: the principal is never a A: use Client",
        "policies[0], policy 1: the principal is never a B: use Client",
        "policies[0], policy 1: the resource is never a C: use Tool, Prompt, Resource",
        "policies[1]: the principal is never a D: use Client",
    ];
    assert_eq!(warnings, expected);
}
