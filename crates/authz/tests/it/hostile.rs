//! Hostile input.

use serde_json::{Value, json};
use skep_authz::{Action, check};

use crate::fixture::{EVERYTHING, Request, cedar};

#[test]
fn an_id_is_only_ever_an_id() {
    for id in [
        "",
        "\"",
        r#"x" || true || "y"#,
        r#"search"::Tool::"x"#,
        "\\",
        "a\0b",
        "line\nbreak",
        "\u{202e}gpj.exe",
        "é",
        "e\u{301}",
        "🐝",
        "'; drop table",
        &"x".repeat(100_000),
    ] {
        let only = Request::of([r#"permit(principal, action, resource == Tool::"search");"#]);
        assert_eq!(only.on(Action::CallTool, id).denial(), "no policy permits it");
        let same = Request::when("resource.name == context.arg_name");
        assert!(same.arguments(json!({"name": id})).on(Action::CallTool, id).is_allowed(), "{id:?}");
        let claims = json!({"sub": id, "groups": [id]});
        assert!(
            Request::when("principal.claim_sub == context.claim_sub").claims(claims.clone()).is_allowed()
        );
        assert!(!Request::when(r#"principal in THVGroup::"admin""#).claims(claims).is_allowed());
    }
}

#[test]
fn names_of_claims_and_arguments_are_only_ever_names() {
    let arguments = json!({"": "a", "\"": "b", "a.b": "c", "__entity": "d", "__extn": "e", "é\n": "f"});
    assert!(Request::of([EVERYTHING]).arguments(arguments.clone()).claims(arguments.clone()).is_allowed());
    let request = Request::when(r#"context["arg_a.b"] == "c" && context.arg___entity == "d""#);
    assert!(request.arguments(arguments).is_allowed());
    // Cedar's own JSON uses these for references and calls. Here they are data.
    let claims = json!({"ref": {"__entity": {"type": "Client", "id": "root"}}});
    assert!(Request::when("principal.claim_ref.__entity.id == \"root\"").claims(claims).is_allowed());
}

#[test]
fn deep_and_large_input_is_safe() {
    let deep = (0..100)
        .fold(json!(1), |value, level| if level % 2 == 0 { json!([value]) } else { json!({"a": value}) });
    let wide: Value = (0..10_000).map(|index| json!(format!("group-{index}"))).collect();
    let claims = json!({"deep": deep, "groups": wide});
    assert!(Request::of([EVERYTHING]).claims(claims.clone()).arguments(json!({"deep": deep})).is_allowed());
    assert!(Request::when(r#"principal in THVGroup::"group-9999""#).claims(claims).is_allowed());
}

#[test]
fn a_policy_that_nests_too_deep_is_rejected_before_it_is_parsed() {
    let policy = |condition: String| format!("permit(principal, action, resource) when {{ {condition} }};");
    let nested = |depth: usize| {
        [
            format!("{}true{}", "(".repeat(depth), ")".repeat(depth)),
            format!("{}{} == 1", "[".repeat(depth), "]".repeat(depth)),
            format!("{}true{}", "!(".repeat(depth), ")".repeat(depth)),
            format!("{} true", "if context has a then true else ".repeat(depth)),
        ]
    };
    for condition in [60, 100, 1_000, 100_000].into_iter().flat_map(|depth| {
        let conditions = nested(depth);
        conditions.map(|condition| (depth, condition))
    }) {
        let (depth, condition) = condition;
        let outcome = check(&cedar([&policy(condition)]));
        match (depth, outcome) {
            (60, Ok(_)) => {}
            (60, Err(error)) => panic!("{error}"),
            (_, outcome) => {
                let message = outcome.unwrap_err().to_string();
                let expected = "policies[0]: it nests deeper than 64 levels: write several policies instead";
                assert_eq!(message, expected);
            }
        }
    }
}

#[test]
fn a_policy_that_is_too_long_is_rejected_and_one_that_is_long_is_decided() {
    let one_of = |count: usize| {
        let names: Vec<_> = (0..count).map(|index| format!("resource.name == \"tool-{index}\"")).collect();
        names.join(" || ")
    };
    let last = Request::when(&one_of(900)).on(Action::CallTool, "tool-899");
    assert!(last.is_allowed(), "{:?}", last.decision());
    for condition in [one_of(2_000), vec!["1"; 100_000].join("+"), format!("context{}", ".a".repeat(100_000))]
    {
        let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
        let message = check(&cedar([&policy])).unwrap_err().to_string();
        assert!(message.starts_with("policies[0]: it has more than 2000 operators: "), "{message}");
    }
    let names: Vec<_> = (0..5_000).map(|index| format!("\"tool-{index}\"")).collect();
    let set = format!("[{}].contains(resource.name)", names.join(", "));
    assert!(
        Request::when(&set).on(Action::CallTool, "tool-4999").is_allowed(),
        "a set may be as long as it likes"
    );
}

#[test]
fn brackets_in_strings_and_comments_do_not_count() {
    let brackets = "([{".repeat(200);
    let policy = format!(
        "// {brackets}\npermit(principal, action, resource) when {{ resource.name != \"{brackets}\\\"{brackets}\" }};"
    );
    assert!(Request::of([&policy]).is_allowed());
}

#[test]
fn many_policies_in_one_text_are_measured_one_by_one() {
    let policies = r#"permit(principal, action, resource) when { resource.name == "search" };"#.repeat(500);
    assert!(Request::of([&policies]).is_allowed());
}

#[test]
fn entities_that_nest_as_deep_as_json_may_are_read() {
    let value = (0..100).fold(json!("x"), |value, _| json!({ "a": value }));
    let entities = json!([{"uid": {"type": "Tool", "id": "search"}, "attrs": {"deep": value}}]);
    assert!(Request::when("resource.deep has a").entities(entities).is_allowed());
}
