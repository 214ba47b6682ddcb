//! Generated requests and policies.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use skep_authz::{
    Action, Authorizer, Decision, Denial, Document, Hints, Principal, PrincipalKind, Resource, check,
    treatment,
};

use crate::fixture::cedar;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["a", "b", "sub", "groups", "roles", "n", "n_present", ""]).prop_map(Into::into),
        any::<String>()
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(|number| json!(number)),
        (-1_000_000_i64..1_000_000).prop_map(|number| json!(number as f64 / 10_000.0)),
        name().prop_map(Into::into),
    ];
    leaf.prop_recursive(16, 64, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Into::into), object(inner).prop_map(Into::into)]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    vec((name(), value), 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn action() -> impl Strategy<Value = Action> {
    select(vec![Action::CallTool, Action::GetPrompt, Action::ReadResource])
}

/// A policy.
fn policy() -> impl Strategy<Value = String> {
    let effect = select(vec!["permit", "forbid"]);
    let who = select(vec!["principal", r#"principal == Client::"a""#, r#"principal in THVGroup::"a""#]);
    let what =
        select(vec!["action", r#"action == Action::"call_tool""#, r#"action == Action::"get_prompt""#]);
    let which =
        select(vec!["resource", r#"resource == Tool::"a""#, "resource is Prompt", r#"resource in MCP::"s""#]);
    let condition = select(vec![
        "true",
        "false",
        "context.arg_n",
        r#"context.arg_n.lessThan(decimal("5.0"))"#,
        "context has arg_n_present",
        r#"principal.claim_a == "b""#,
        "principal has claim_a && resource has arg_a && principal.claim_a == resource.arg_a",
        "resource.readOnlyHint",
        "principal.claim_groups.contains(principal.claim_sub)",
    ]);
    (effect, who, what, which, condition).prop_map(|(effect, who, what, which, condition)| {
        format!("{effect}({who}, {what}, {which}) when {{ {condition} }};")
    })
}

fn permits(policy: &str) -> bool {
    policy.starts_with("permit")
}

proptest! {
    #[test]
    fn a_request_passes_only_if_a_policy_permits_it(
        policies in vec(policy(), 1..5),
        subject in name(),
        (claims, arguments) in (object(json_value()), option::of(object(json_value()))),
        action in action(),
        id in name(),
        read_only in any::<Option<bool>>(),
    ) {
        let principal = Principal { kind: PrincipalKind::Client, subject: &subject, claims: &claims };
        let hints = Hints { read_only, ..Hints::default() };
        let resource = Resource { id: &id, hints };
        let decide = |policies: Vec<String>| {
            let authorizer = Authorizer::new(&skep_authz::Cedar { policies, ..cedar([]) }, "s").unwrap();
            let decision = authorizer.decide(&principal, action, &resource, arguments.as_ref());
            let again = authorizer.subject(&principal).decide(action, &resource, arguments.as_ref());
            assert_eq!(decision, again);
            decision
        };
        let alone: Vec<Decision> = policies.iter().map(|policy| decide(vec![policy.clone()])).collect();
        let permitted = alone.iter().any(Decision::is_allowed);
        let denies = |decision: &Decision| {
            matches!(decision, Decision::Deny(denial) if *denial != Denial::NotPermitted)
        };
        // A request passes exactly if one permits it, and none forbids it or fails.
        let expected = permitted && !alone.iter().any(denies);
        prop_assert_eq!(decide(policies.clone()).is_allowed(), expected, "{:?}", alone);
        prop_assert!(!expected || !subject.is_empty());
        for (policy, decision) in policies.iter().zip(&alone) {
            prop_assert!(permits(policy) || !decision.is_allowed());
        }
    }

    #[test]
    fn a_text_is_a_policy_or_is_rejected_in_one_line(text in ".{0,200}", more in "[(\\[{})\\]\"/; a-z.!&|=]{0,200}") {
        for text in [text, more.clone(), format!("permit(principal, action, resource) when {{ {more} }};")] {
            if let Err(error) = check(&cedar([&text])) {
                let message = error.to_string();
                prop_assert!(message.starts_with("policies[0]: "), "{}", message);
                prop_assert_eq!(message.lines().count(), 1, "{}", message);
            }
        }
    }

    #[test]
    fn entities_are_read_or_rejected(entities in json_value(), attributes in json_value()) {
        let entity = json!([{"uid": {"type": "Tool", "id": "a"}, "attrs": attributes}]);
        for entities in [entities, entity] {
            let cedar = skep_authz::Cedar {
                entities_json: entities.to_string(), ..cedar(["permit(principal, action, resource);"])
            };
            if let Err(error) = check(&cedar) {
                prop_assert!(error.path().starts_with("entities_json"), "{}", error);
                prop_assert!(Authorizer::new(&cedar, "s").is_err());
            }
        }
    }

    #[test]
    fn no_document_and_no_method_panics(document in json_value(), method in any::<String>()) {
        let _ = Document::read(&document).and_then(|document| document.check());
        let _ = treatment(&method);
    }
}
