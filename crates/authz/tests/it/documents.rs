//! Errors of documents, with their paths.

use serde_json::{Value, json};
use skep_authz::{Cedar, Document, Error, check};

use crate::fixture::{EVERYTHING, cedar};

fn problem(document: Value) -> String {
    let checked = Document::read(&document).and_then(|document| document.check());
    let message = checked.unwrap_err().to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn a_document_is_of_one_of_two_types() {
    let cedar = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [EVERYTHING], "new": 1}});
    assert!(
        matches!(Document::read(&cedar).unwrap(), Document::Cedar(cedar) if cedar.policies == [EVERYTHING])
    );
    let http = json!({"url": "https://pdp.example", "timeout": 5});
    let pdp = json!({"type": "httpv1", "pdp": {"http": http, "claim_mapping": "mpe", "context": {"include_args": true}}});
    let Document::Pdp(pdp) = Document::read(&pdp).unwrap() else { panic!("it is of type httpv1") };
    assert_eq!((pdp.http.timeout, pdp.context.include_args, pdp.check()), (5, true, Ok(())));
    let types = "use cedarv1 for Cedar policies, or httpv1 for a policy decision point";
    for (document, expected) in [
        (json!({"type": "opa"}), format!("type: \"opa\" is not known: {types}")),
        (json!({}), format!("type: \"\" is not known: {types}")),
        (json!([]), format!("type: \"\" is not known: {types}")),
        (json!({"type": "cedarv1", "version": "2.0"}), "version: \"2.0\" is not known: use \"1.0\"".into()),
        (json!({"type": "cedarv1"}), "cedar: set what the type needs".into()),
        (json!({"type": "httpv1", "cedar": {}}), "pdp: set what the type needs".into()),
        (
            json!({"type": "cedarv1", "cedar": {"policies": "p"}}),
            "cedar: invalid type: string \"p\", expected a sequence".into(),
        ),
        (
            json!({"type": "httpv1", "pdp": {}}),
            "pdp.http.url: set the URL of the policy decision point".into(),
        ),
        (
            json!({"type": "httpv1", "pdp": {"http": {"url": "http://a"}, "claim_mapping": "own"}}),
            "pdp.claim_mapping: \"own\" is neither mpe nor standard".into(),
        ),
        (
            json!({"type": "cedarv1", "cedar": {"policies": [EVERYTHING, "permit"]}}),
            "cedar.policies[1]: line 1, column 7, after `permit`: unexpected end of input, expected `(`"
                .into(),
        ),
    ] {
        assert_eq!(problem(document), expected);
    }
}

#[test]
fn keys_match_in_any_case_and_none_is_set_twice() {
    let cedar = json!({"Type": "cedarv1", "Cedar": {"Policies": [EVERYTHING], "Group_Claim_Name": "teams"}});
    let Document::Cedar(cedar) = Document::read(&cedar).unwrap() else { panic!("it is of type cedarv1") };
    assert_eq!((cedar.policies.len(), cedar.group_claim_name.as_str()), (1, "teams"));
    let error = problem(json!({"type": "cedarv1", "cedar": {}, "Cedar": {"policies": [EVERYTHING]}}));
    assert_eq!(error, "document: duplicate field `cedar`");
    let error = problem(json!({"type": "cedarv1", "Version": "2.0"}));
    assert_eq!(error, "version: \"2.0\" is not known: use \"1.0\"");
}

fn wrong(policy: &str) -> String {
    let error: Error = check(&cedar([EVERYTHING, EVERYTHING, policy])).unwrap_err();
    assert_eq!(error.path(), "policies[2]");
    let message = error.to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message.trim_start_matches("policies[2]: ").into()
}

#[test]
fn a_policy_that_does_not_parse_is_quoted_at_the_position() {
    for (policy, expected) in [
        (
            "permit(principal, action, resource)",
            "line 1, column 36, after `permit(principal, action, resource)`: unexpected end of input, expected `;` or identifier",
        ),
        (
            "permit(principal, action, resurce);",
            "line 1, column 27, at `resurce);`: found an invalid variable in the policy scope: resurce, policy scopes must \
             contain a `principal`, `action`, and `resource` element in that order",
        ),
        (
            "permit(\n  principal,\n  action,\n  resource\n) when {\n  context.a = 1\n};",
            "line 6, column 3, at `context.a = 1`: '=' is not a valid operator in Cedar, try using '==' instead",
        ),
        (
            "permit(principal, action, resource) when { \"é\" == @ };",
            "line 1, column 51, at `@ };`: unexpected token `@`, expected `!`, `(`, `-`, `[`, `{`, `false`, identifier, `if`, \
             number, `?principal`, `?resource`, string literal, or `true`",
        ),
        (
            "permit(principal, action == Action::\"call_tool, resource);",
            "line 1, column 37, at `\"call_tool, resource);`: invalid token, try checking that all strings are closed properly",
        ),
        (
            "permit(principal, action, resource) when { foo(1) };",
            "line 1, column 44, at `foo(1) };`: `foo` is not a valid function, did you mean `ip`?",
        ),
        ("", "it has no policy: write one, or remove the item"),
        ("// soon", "it has no policy: write one, or remove the item"),
        (
            "permit(principal == ?principal, action, resource);",
            "it is a template: replace ?principal and ?resource by entities",
        ),
    ] {
        assert_eq!(wrong(policy), expected);
    }
}

#[test]
fn the_quote_of_a_long_policy_is_truncated() {
    let long =
        format!("permit(principal, action, resource) when {{ resource.name = \"{}\" }};", "x".repeat(1_000));
    let message = wrong(&long);
    assert!(message.contains("at `resource.name = \"xxxxxxxxxxxxxxxxxxxxxxx…`"), "{message}");
    assert!(message.chars().count() < 300, "{message}");
}

#[test]
fn a_document_without_a_policy_is_rejected() {
    let error = check(&Cedar::default()).unwrap_err();
    assert_eq!(error.to_string(), "policies: write at least one policy: what none permits is denied");
}

#[test]
fn entities_that_cannot_be_read_are_named() {
    let wrong = |entities: &str| {
        let cedar = Cedar { entities_json: entities.into(), ..cedar([EVERYTHING]) };
        check(&cedar).unwrap_err().to_string()
    };
    for empty in ["", " ", "[]"] {
        let cedar = Cedar { entities_json: empty.into(), ..cedar([EVERYTHING]) };
        assert_eq!(check(&cedar), Ok(vec![]), "{empty:?}");
    }
    let good = r#"{"uid": {"type": "Tool", "id": "a"}}"#;
    for (entities, expected) in [
        (
            "{}".into(),
            "entities_json: it is not a list in JSON: invalid type: map, expected a sequence at line 1 column 0",
        ),
        (
            "[\n{,}]".into(),
            "entities_json: it is not a list in JSON: key must be a string at line 2 column 2",
        ),
        (format!("[{good}, 1]"), "entities_json[1]: write an entity: "),
        (format!("[{good}, {{}}]"), "entities_json[1]: missing field `uid`"),
        (
            format!(r#"[{good}, {{"uid": "Tool::\"a\""}}]"#),
            "entities_json[1]: in uid field of <unknown entity>, expected a literal",
        ),
        (
            r#"[{"uid": {"type": "A", "id": "x"}, "attrs": {"a": [{"b": 1.5}]}}]"#.into(),
            "entities_json[0].attrs.a[0].b: 1.5 is no value of Cedar: ",
        ),
        (
            r#"[{"uid": {"type": "A", "id": "x"}, "attrs": {"a": null}}]"#.into(),
            "entities_json[0].attrs.a: null is no value of Cedar: ",
        ),
        (r#"[{"uid": {"type": "A B", "id": "x"}}]"#.into(), "entities_json[0]: "),
        (
            format!(r#"[{good}, {{"uid": {{"type": "Tool", "id": "a"}}, "attrs": {{"b": 1}}}}]"#),
            "entities_json: duplicate entity entry `Tool::\"a\"`",
        ),
        (
            r#"[{"uid": {"type": "A", "id": "x"}, "parents": [{"type": "A", "id": "y"}]},
                {"uid": {"type": "A", "id": "y"}, "parents": [{"type": "A", "id": "x"}]}]"#
                .into(),
            "entities_json: input graph has a cycle containing vertex `A::",
        ),
    ] {
        let message = wrong(&entities);
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn groups_are_of_a_type_without_a_namespace() {
    for (name, expected) in [
        (
            "App::Team",
            Some(
                "group_entity_type: \"App::Team\" has a namespace: write a name without \"::\", such as THVGroup",
            ),
        ),
        ("my team", Some("group_entity_type: \"my team\" is no name of a type: write one such as THVGroup")),
        ("Team", None),
        ("", None),
    ] {
        let cedar = Cedar { group_entity_type: name.into(), ..cedar([EVERYTHING]) };
        assert_eq!(check(&cedar).err().map(|error| error.to_string()).as_deref(), expected);
    }
}
