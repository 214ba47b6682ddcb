//! The policies that are not evaluated, and the results that are kept, change no decision.

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
};
use serde_json::json;
use skep_config::run_config::Cedar;

use super::*;
use crate::{Authorizer, Hints, PrincipalKind, compiled::failure};

/// Entities that scopes, conditions and documents name.
const ENTITIES: [(&str, &str); 14] = [
    ("Client", "a"),
    ("Client", "b"),
    ("THVGroup", "a"),
    ("THVGroup", "b"),
    ("THVGroup", "c"),
    ("Tool", "a"),
    ("Tool", "b"),
    ("Prompt", "a"),
    ("Resource", "a"),
    ("MCP", "s"),
    ("MCP", "t"),
    ("Action", "call_tool"),
    ("Action", "get_prompt"),
    ("Action", "all"),
];

fn entity() -> impl Strategy<Value = (&'static str, &'static str)> {
    select(ENTITIES.to_vec())
}

/// The scope of a principal or a resource, in all forms.
fn scope(variable: &'static str) -> impl Strategy<Value = String> {
    let form = select(vec!["", "==", "in", "in", "is", "is in"]);
    (form, entity(), entity()).prop_map(move |(form, (type_, id), (group_type, group))| match form {
        "" => variable.to_owned(),
        "is" => format!("{variable} is {type_}"),
        "is in" => format!("{variable} is {type_} in {group_type}::\"{group}\""),
        _ => format!("{variable} {form} {type_}::\"{id}\""),
    })
}

fn action_scope() -> impl Strategy<Value = String> {
    let action = select(vec!["call_tool", "get_prompt", "read_resource", "all"]);
    let several = vec(action.clone(), 0..3).prop_map(|names| {
        let names: Vec<_> = names.iter().map(|name| format!("Action::\"{name}\"")).collect();
        format!("action in [{}]", names.join(", "))
    });
    prop_oneof![
        Just("action".to_owned()),
        action.clone().prop_map(|name| format!("action == Action::\"{name}\"")),
        action.prop_map(|name| format!("action in Action::\"{name}\"")),
        several,
    ]
}

fn policy() -> impl Strategy<Value = String> {
    let condition = select(vec![
        "true",
        "true",
        "false",
        "context.arg_n",
        "resource.arg_n",
        "resource has arg_n && resource.arg_n == context.arg_n",
        r#"context has arg_n && context.arg_n.lessThan(decimal("5.0"))"#,
        "context == {}",
        r#"principal.claim_a == "b""#,
        "resource.readOnlyHint",
        r#"resource.name == "a""#,
        "resource.owner == principal",
        "resource has owner && resource.owner.n == 1",
        r#"Tool::"a" in MCP::"s""#,
        r#"principal in [THVGroup::"a", MCP::"s"]"#,
        r#"action in Action::"all""#,
        "principal.missing",
    ]);
    let effect = select(vec!["permit", "permit", "forbid"]);
    (effect, scope("principal"), action_scope(), scope("resource"), condition).prop_map(
        |(effect, principal, action, resource, condition)| {
            format!("{effect}({principal}, {action}, {resource}) when {{ {condition} }};")
        },
    )
}

/// Entities without a circle: the parents of one are among those that follow.
fn entities() -> impl Strategy<Value = String> {
    let one = (any::<bool>(), vec(any::<prop::sample::Index>(), 0..3), option::of(entity()));
    let shuffled = Just(ENTITIES.to_vec()).prop_shuffle();
    (shuffled, vec(one, ENTITIES.len())).prop_map(|(order, parts)| {
        let uid = |(type_, id): (&str, &str)| json!({"type": type_, "id": id});
        let document = parts.into_iter().enumerate().filter(|(_, (is_there, ..))| *is_there);
        let document = document.map(|(place, (_, parents, owner))| {
            let rest = &order[place + 1..];
            let parents = parents.into_iter().filter(|_| !rest.is_empty()).map(|index| *index.get(rest));
            // In Cedar, only an action is a parent of an action.
            let parents = parents.filter(|parent| order[place].0 != "Action" || parent.0 == "Action");
            let parents: Vec<_> = parents.map(uid).collect();
            let mut attributes = json!({"n": 1});
            if let Some(owner) = owner {
                attributes["owner"] = json!({"__entity": uid(owner)});
            }
            json!({"uid": uid(order[place]), "attrs": attributes, "parents": parents})
        });
        json!(document.collect::<Vec<_>>()).to_string()
    })
}

/// An action, the resource with a hint, and arguments.
type Generated = (Action, &'static str, Option<bool>, Option<Map<String, Value>>);

fn request() -> impl Strategy<Value = Generated> {
    let action = select(vec![Action::CallTool, Action::CallTool, Action::GetPrompt, Action::ReadResource]);
    let value = select(vec![json!(true), json!(1), json!(7), json!("x"), json!([])]);
    let argument = (select(vec!["n", "other"]), value);
    let arguments = vec(argument, 0..3)
        .prop_map(|pairs| pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    (action, select(vec!["a", "b", "c"]), any::<Option<bool>>(), option::of(arguments))
}

/// What all policies have in response, with nothing left out and nothing kept.
fn whole(
    subject: &Subject,
    action: Action,
    resource: &Resource<'_>,
    arguments: Option<&Map<String, Value>>,
) -> Result<Response, Denial> {
    let caller = subject.caller()?;
    let given = subject.given(arguments);
    let context = caller.context.clone().merge(given.clone()).map_err(|_| Denial::Contradictory)?;
    let entities = caller.with_resource(&subject.compiled, action, resource, given)?;
    let types = &subject.compiled.types;
    let (uid, action, thing) =
        (caller.uid.clone(), types.action(action), types.resource(action, resource.id));
    let request = Request::new(uid, action, thing, context, None).map_err(|_| Denial::Contradictory)?;
    Ok(subject.compiled.evaluate(&request, &Slice::Whole, &entities))
}

/// The decision of Cedar, the policies that determine it, and those that fail.
type Seen = (cedar_policy::Decision, Vec<String>, Vec<Denial>);

fn seen(response: Result<Response, Denial>) -> Result<Seen, Denial> {
    response.map(|response| {
        let diagnostics = response.diagnostics();
        let mut reasons: Vec<_> = diagnostics.reason().map(ToString::to_string).collect();
        let mut failures: Vec<_> = diagnostics.errors().map(failure).collect();
        reasons.sort();
        failures.sort_by_key(ToString::to_string);
        (response.decision(), reasons, failures)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_slice_of_the_policies_decides_like_all_of_them(
        policies in vec(policy(), 1..12),
        entities_json in entities(),
        group_entity_type in select(vec!["", "", "", "Tool", "Client", "MCP", "Action"]),
        server in select(vec!["s", "s", ""]),
        groups in subsequence(vec!["a", "b", "c", "call_tool", "s"], 0..4),
        (claim, subject) in (select(vec!["b", "c"]), select(vec!["a", "a", "b", "d", ""])),
        requests in vec(request(), 1..6),
    ) {
        let cedar = Cedar {
            policies, entities_json, group_entity_type: group_entity_type.into(), ..Cedar::default()
        };
        let authorizer = Authorizer::new(&cedar, server).unwrap();
        let claims = json!({"groups": groups, "a": claim});
        let subject = authorizer.subject(&Principal { kind: PrincipalKind::Client, subject, claims: claims.as_object().unwrap() });
        // The second time, results are kept.
        for (action, id, read_only, arguments) in requests.iter().chain(&requests) {
            let (action, arguments) = (*action, arguments.as_ref());
            let hints = Hints { read_only: *read_only, ..Hints::default() };
            let resource = Resource { id, hints };
            let expected = whole(&subject, action, &resource, arguments);
            let decision = match &expected {
                Ok(response) => decision(response),
                Err(denial) => Decision::Deny(denial.clone()),
            };
            prop_assert_eq!(seen(subject.response(action, &resource, arguments)), seen(expected));
            prop_assert_eq!(subject.decide(action, &resource, arguments), decision);
        }
    }
}

#[test]
fn a_policy_whose_scope_cannot_match_is_not_evaluated() {
    let scopes = [
        r#"principal in THVGroup::"g1", action, resource"#,
        r#"principal in THVGroup::"g2", action, resource"#,
        r#"principal == Client::"bob", action, resource"#,
        r#"principal is THVGroup, action, resource"#,
        r#"principal, action == Action::"get_prompt", resource"#,
        r#"principal, action in [Action::"get_prompt"], resource"#,
        r#"principal, action, resource is Prompt"#,
        r#"principal, action, resource == Tool::"a""#,
        r#"principal, action, resource in MCP::"s""#,
    ];
    let policies = scopes.map(|scope| format!("permit({scope});")).into();
    let entities_json =
        r#"[{"uid": {"type": "THVGroup", "id": "g0"}, "parents": [{"type": "THVGroup", "id": "g1"}]}]"#;
    let cedar = Cedar { policies, entities_json: entities_json.into(), ..Cedar::default() };
    let claims = json!({"groups": ["g0"]});
    let principal =
        Principal { kind: PrincipalKind::Client, subject: "alice", claims: claims.as_object().unwrap() };
    let subject = Authorizer::new(&cedar, "s").unwrap().subject(&principal);
    let places = |id: &str| {
        let resource = subject.compiled.types.resource(Action::CallTool, id);
        match subject.policies(subject.caller().unwrap(), Action::CallTool, &resource) {
            Slice::Part(places) => places.to_vec(),
            Slice::Whole => panic!("all policies"),
        }
    };
    assert_eq!(places("a"), [0, 7, 8]);
    assert_eq!(places("b"), [0, 8]);
}

#[test]
fn what_a_caller_keeps_is_limited_whatever_it_requests() {
    let policies = vec![
        "permit(principal, action, resource) when { context.arg_n };".to_owned(),
        "forbid(principal, action, resource == Tool::\"t7\");".repeat(NAMED + 1),
    ];
    let subject = Authorizer::new(&Cedar { policies, ..Cedar::default() }, "s").unwrap();
    let claims = json!({"a": "b"});
    let subject = subject.subject(&Principal {
        kind: PrincipalKind::Client,
        subject: "alice",
        claims: claims.as_object().unwrap(),
    });
    let arguments = json!({"n": true});
    for number in 0..2 * DECISIONS {
        let id = format!("t{number}");
        let resource = Resource::new(&id);
        let allowed = subject.decide(Action::CallTool, &resource, arguments.as_object()).is_allowed();
        assert_eq!(allowed, number != 7);
        assert!(!subject.decide(Action::CallTool, &resource, None).is_allowed());
        assert!(subject.decisions.len() <= DECISIONS && subject.targets.len() <= RESOURCES);
        assert!(subject.weight() < 100_000, "{}", subject.weight());
        let key = Key::of(Action::CallTool, &resource).unwrap();
        assert_eq!(
            subject.decisions.get(&key).is_some(),
            number != 7,
            "a denial by many policies is not kept"
        );
    }
}
