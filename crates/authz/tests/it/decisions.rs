//! Decisions of realistic policies.

use serde_json::json;
use skep_authz::{Action, Authorizer, Cedar, Decision, Denial, Hints, Principal, PrincipalKind, Resource};

use crate::fixture::{EVERYTHING, Request, cedar, object};

#[test]
fn policies_decide_by_principal_action_and_resource() {
    use Action::{CallTool, GetPrompt, ReadResource};
    let uri = "file:///etc/hosts?a=b#c";
    for (policy, action, id, passes) in [
        (
            r#"permit(principal, action == Action::"call_tool", resource == Tool::"search");"#,
            CallTool,
            "search",
            true,
        ),
        (
            r#"permit(principal, action == Action::"call_tool", resource == Tool::"search");"#,
            CallTool,
            "Search",
            false,
        ),
        (
            r#"permit(principal, action == Action::"call_tool", resource == Tool::"search");"#,
            GetPrompt,
            "search",
            false,
        ),
        (r#"permit(principal == Client::"alice", action, resource);"#, GetPrompt, "p", true),
        (r#"permit(principal == Client::"bob", action, resource);"#, GetPrompt, "p", false),
        (r#"permit(principal is Client, action, resource is Prompt);"#, GetPrompt, "p", true),
        (r#"permit(principal, action, resource in MCP::"web");"#, ReadResource, uri, true),
        (r#"permit(principal, action, resource in MCP::"files");"#, ReadResource, uri, false),
        (
            r#"permit(principal, action, resource == Resource::"file:///etc/hosts?a=b#c");"#,
            ReadResource,
            uri,
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.uri like "file:///etc/*" };"#,
            ReadResource,
            uri,
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.name == "search" };"#,
            CallTool,
            "search",
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.operation == "call" };"#,
            CallTool,
            "search",
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.operation == "get" };"#,
            GetPrompt,
            "p",
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.operation == "read" };"#,
            ReadResource,
            uri,
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.feature == "tool" };"#,
            CallTool,
            "search",
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.feature == "prompt" };"#,
            GetPrompt,
            "p",
            true,
        ),
        (
            r#"permit(principal, action, resource) when { resource.feature == "resource" };"#,
            ReadResource,
            uri,
            true,
        ),
        (
            r#"permit(principal, action, resource) when { action.operation == "call_tool" };"#,
            CallTool,
            "search",
            true,
        ),
        (r#"permit(principal, action == Action::"list_tools", resource);"#, CallTool, "search", false),
    ] {
        assert_eq!(Request::of([policy]).on(action, id).is_allowed(), passes, "{policy} {action:?} {id}");
    }
}

#[test]
fn a_denial_names_the_policies_and_contains_nothing_of_the_token() {
    let forbid = r#"forbid(principal, action, resource) when { principal.claim_team == "red" };"#;
    let red = json!({"team": "red", "email": "alice@example.com"});
    let denial = |request: Request| request.claims(red.clone()).denial();
    assert_eq!(denial(Request::of([EVERYTHING, forbid])), "forbidden by policy1");
    assert_eq!(denial(Request::of([forbid, EVERYTHING, forbid])), "forbidden by policy0, policy2");
    assert_eq!(denial(Request::of([&forbid.replace("red", "blue")])), "no policy permits it");
    let failing = r#"permit(principal, action, resource) when { principal.claim_email < 5 };"#;
    let failed = "policy1 could not be evaluated at \"principal.claim_email\"";
    assert_eq!(denial(Request::of([EVERYTHING, failing])), failed);
    let absent = "permit(principal, action, resource) when { context.arg_city == \"Bonn\" };";
    assert_eq!(denial(Request::of([absent])), "policy0 could not be evaluated at \"context.arg_city\"");
}

#[test]
fn policies_that_share_a_text_are_numbered() {
    let both = format!("{EVERYTHING}\n// And yet:\nforbid(principal, action, resource);");
    assert_eq!(Request::of([EVERYTHING, &both]).denial(), "forbidden by policy1.1");
}

#[test]
fn a_policy_that_fails_denies_what_another_permits() {
    let failing = r#"permit(principal, action, resource) when { context.arg_n };"#;
    assert!(Request::of([EVERYTHING, failing]).fails());
    let elsewhere = r#"permit(principal, action, resource == Tool::"other") when { context.arg_n };"#;
    assert!(Request::of([EVERYTHING, elsewhere]).is_allowed(), "it is not evaluated");
}

#[test]
fn a_caller_without_a_subject_is_denied() {
    let request = Request { subject: "", ..Request::of([EVERYTHING]) };
    assert_eq!(request.decision(), Decision::Deny(Denial::NoSubject));
}

#[test]
fn hints_of_a_tool_are_attributes_if_the_server_gave_them() {
    let hints = Hints { read_only: Some(true), destructive: Some(false), ..Hints::default() };
    let request = |condition: &str| Request { hints, ..Request::when(condition) };
    assert!(request("resource.readOnlyHint && !resource.destructiveHint").is_allowed());
    assert!(
        request("resource has idempotentHint || resource has openWorldHint").denial().contains("no policy")
    );
    assert!(request("resource.openWorldHint").fails());
    assert!(
        !request("resource.readOnlyHint").on(Action::GetPrompt, "p").is_allowed(),
        "only tools have hints"
    );
}

#[test]
fn entities_of_the_document_extend_those_of_the_request() {
    let entities = json!([
        {"uid": {"type": "THVGroup", "id": "dev"}, "parents": [{"type": "Role", "id": "writer"}]},
        {"uid": {"type": "Tool", "id": "search"}, "attrs": {"owner": "alice", "name": "other", "readOnlyHint": false}},
        {"uid": {"type": "Client", "id": "alice"}, "attrs": {"level": 3}, "parents": [{"type": "Team", "id": "a"}]},
        {"uid": {"type": "Action", "id": "call_tool"}, "parents": [{"type": "Action", "id": "change"}]},
        {"uid": {"type": "MCP", "id": "web"}, "attrs": {"open": true}, "parents": [{"type": "Zone", "id": "dmz"}]},
    ]);
    let hints = Hints { read_only: Some(true), ..Hints::default() };
    for condition in [
        r#"principal in Role::"writer""#,
        r#"principal in Team::"a" && principal in THVGroup::"dev""#,
        r#"principal.level == 3 && principal.claim_team == "x""#,
        r#"resource.owner == "alice""#,
        r#"resource.name == "search""#,
        "!resource.readOnlyHint",
        r#"action in Action::"change" && action.operation == "call_tool""#,
        r#"resource in Zone::"dmz" && MCP::"web".open"#,
    ] {
        let request = Request { hints, ..Request::when(condition) }.entities(entities.clone());
        let request = request.claims(json!({"groups": ["dev"], "team": "x"}));
        assert!(request.is_allowed(), "{condition}: {:?}", request.decision());
    }
}

#[test]
fn a_request_that_contradicts_the_entities_is_denied() {
    let entities =
        json!([{"uid": {"type": "MCP", "id": "web"}, "parents": [{"type": "Tool", "id": "search"}]}]);
    let request = Request::of([EVERYTHING]).entities(entities);
    assert_eq!(request.decision(), Decision::Deny(Denial::Contradictory));
    let mut itself = Request::of([EVERYTHING]).claims(json!({"groups": ["alice"]}));
    itself.cedar.group_entity_type = "Client".into();
    assert_eq!(itself.decision(), Decision::Deny(Denial::Contradictory));
}

#[test]
fn repeated_decisions_for_a_subject_equal_single_ones() {
    let policies = cedar([
        r#"permit(principal in THVGroup::"dev", action, resource) unless { resource.name like "admin*" };"#,
        r#"permit(principal, action == Action::"call_tool", resource) when { context has arg_dry && context.arg_dry };"#,
    ]);
    let authorizer = Authorizer::new(&policies, "web").unwrap();
    for claims in [json!({"groups": ["dev"]}), json!({})] {
        let principal = Principal { kind: PrincipalKind::Client, subject: "alice", claims: object(&claims) };
        let subject = authorizer.subject(&principal);
        for name in ["search", "admin-reset", "fetch"] {
            for arguments in [None, Some(json!({"dry": true})), Some(json!({"dry": false}))] {
                let (resource, arguments) = (Resource::new(name), arguments.as_ref().map(object));
                let often = subject.decide(Action::CallTool, &resource, arguments);
                assert_eq!(often, authorizer.decide(&principal, Action::CallTool, &resource, arguments));
                let dry = arguments.is_some_and(|arguments| arguments["dry"] == true);
                let dev = !claims["groups"].is_null() && !name.starts_with("admin");
                assert_eq!(often.is_allowed(), dry || dev, "{name} {arguments:?}");
            }
        }
    }
}

#[test]
fn resources_of_a_server_without_a_name_have_no_parent() {
    let policies = Cedar { ..cedar([r#"permit(principal, action, resource in MCP::"");"#]) };
    let authorizer = Authorizer::new(&policies, "").unwrap();
    let principal =
        Principal { kind: PrincipalKind::Client, subject: "alice", claims: &serde_json::Map::new() };
    let decision = authorizer.decide(&principal, Action::CallTool, &Resource::new("search"), None);
    assert_eq!(decision, Decision::Deny(Denial::NotPermitted));
}

/// Cedar gets only the entities that a decision can depend on. These are all that it depends on.
#[test]
fn policies_reach_entities_by_parents_by_attributes_and_by_name() {
    let entity = |type_: &str, id: &str, attrs: serde_json::Value, parents: serde_json::Value| json!({"uid": {"type": type_, "id": id}, "attrs": attrs, "parents": parents});
    let reference = |type_: &str, id: &str| json!({"__entity": {"type": type_, "id": id}});
    let parent = |type_: &str, id: &str| json!([{"type": type_, "id": id}]);
    let mut entities = vec![
        entity("Client", "alice", json!({"manager": reference("Client", "carol")}), json!([])),
        entity("Client", "carol", json!({"level": 3, "peers": [reference("Client", "dave")]}), json!([])),
        entity("Client", "dave", json!({"level": 4}), json!([])),
        entity("THVGroup", "dev", json!({}), parent("THVGroup", "staff")),
        entity("THVGroup", "staff", json!({"floor": 2}), parent("THVGroup", "all")),
        entity("Tool", "search", json!({"owner": reference("Client", "alice")}), parent("Shelf", "a")),
        entity("Shelf", "a", json!({"size": 5}), parent("Room", "r")),
        entity("Room", "r", json!({}), json!([])),
        entity(
            "Config",
            "limits",
            json!({"most": 7, "next": {"of": reference("Config", "other")}}),
            json!([]),
        ),
        entity("Config", "other", json!({"most": 8}), json!([])),
    ];
    entities.extend((0..500).map(|number| entity("THVGroup", &number.to_string(), json!({}), json!([]))));
    for condition in [
        r#"principal in THVGroup::"all""#,
        "principal.manager.level == 3",
        "principal.manager.peers.contains(Client::\"dave\")",
        r#"Client::"dave".level == 4"#,
        r#"THVGroup::"staff" in THVGroup::"all" && THVGroup::"staff".floor == 2"#,
        r#"resource in Room::"r" && resource in MCP::"web""#,
        // The caller has its claims also where an attribute leads back to it.
        r#"resource.owner == principal && resource.owner.claim_team == "x" && principal.claim_team == "x""#,
        r#"Config::"limits".most == 7 && Config::"limits".next.of.most == 8"#,
        r#"action.operation == "call_tool""#,
    ] {
        let request = Request::when(condition).entities(json!(entities));
        let request = request.claims(json!({"groups": ["dev"], "team": "x"}));
        assert!(request.is_allowed(), "{condition}: {}", request.denial());
    }
}

#[test]
fn a_workflow_is_a_principal_of_its_own_which_no_caller_can_be() {
    let policy = r#"permit(principal == Workflow::"combo", action, resource);"#;
    let authorizer = Authorizer::new(&cedar([policy]), "files").unwrap();
    let decide = |kind, subject| {
        let principal = Principal { kind, subject, claims: &serde_json::Map::new() };
        authorizer.subject(&principal).decide(Action::CallTool, &Resource::new("a"), None)
    };
    assert_eq!(decide(PrincipalKind::Workflow, "combo"), Decision::Allow);
    assert_eq!(decide(PrincipalKind::Client, "combo"), Decision::Deny(Denial::NotPermitted));
    assert_eq!(decide(PrincipalKind::Workflow, "other"), Decision::Deny(Denial::NotPermitted));
}
