//! Claims, arguments and groups as policies see them.

use serde_json::{Value, json};

use crate::fixture::Request;

#[test]
fn claims_keep_their_type_in_the_principal_and_in_the_context() {
    let claims = json!({
        "sub": "alice", "admin": true, "age": 42, "score": -1.25, "tags": ["a", 1, null],
        "address": {"city": "Bonn", "zip": null, "geo": {"lat": 50.73}}, "nothing": null, "https://x.example/y": "z",
    });
    for condition in [
        r#".claim_sub == "alice""#,
        ".claim_admin",
        r#".claim_age == decimal("42.0")"#,
        r#".claim_age.greaterThan(decimal("41.9999"))"#,
        r#".claim_score == decimal("-1.25")"#,
        r#".claim_tags == ["a", decimal("1.0")]"#,
        r#".claim_tags.contains("a")"#,
        r#".claim_address.city == "Bonn""#,
        r#".claim_address.geo.lat.lessThan(decimal("51.0"))"#,
        r#"["claim_https://x.example/y"] == "z""#,
    ] {
        for variable in ["principal", "context"] {
            let request = Request::when(&format!("{variable}{condition}")).claims(claims.clone());
            assert!(request.is_allowed(), "{variable}{condition}: {:?}", request.decision());
        }
    }
    for absent in ["context has claim_nothing", "context.claim_address has zip", "resource has claim_sub"] {
        assert!(!Request::when(absent).claims(claims.clone()).is_allowed(), "{absent}");
    }
}

#[test]
fn simple_arguments_are_values_and_others_are_present() {
    let arguments = json!({
        "city": "Bonn", "days": 3, "wet": false, "list": [1], "object": {"a": 1}, "null": null,
        "x": ["hidden"], "x_present": false,
    });
    for condition in [
        r#".arg_city == "Bonn""#,
        r#".arg_days.lessThan(decimal("7.0"))"#,
        ".arg_wet == false",
        ".arg_list_present",
        ".arg_object_present",
        ".arg_null_present",
        ".arg_x_present",
        r#"["arg_city"] like "B*""#,
    ] {
        for variable in ["context", "resource"] {
            let request = Request::when(&format!("{variable}{condition}")).arguments(arguments.clone());
            assert!(request.is_allowed(), "{variable}{condition}: {:?}", request.decision());
        }
    }
    for absent in ["arg_list", "arg_object", "arg_null", "arg_city_present", "city"] {
        let request = Request::when(&format!("context has {absent}")).arguments(arguments.clone());
        assert!(!request.is_allowed(), "{absent}");
    }
}

#[test]
fn arguments_cannot_replace_what_a_resource_is() {
    let arguments =
        json!({"name": "harmless", "operation": "get", "feature": "prompt", "readOnlyHint": true});
    for condition in
        [r#"resource.name == "search""#, r#"resource.operation == "call""#, "!(resource has readOnlyHint)"]
    {
        assert!(Request::when(condition).arguments(arguments.clone()).is_allowed(), "{condition}");
    }
}

#[test]
fn a_number_that_is_not_a_decimal_exists_and_cannot_be_ordered() {
    let forbid = r#"forbid(principal, action, resource) when
        { context has arg_n && context.arg_n.greaterThan(decimal("100.0")) };"#;
    for number in [json!(100.00001), json!(1e300), json!(u64::MAX), json!(i64::MIN), json!(0.00001)] {
        let arguments = json!({ "n": number });
        let limited = Request::of([crate::fixture::EVERYTHING, forbid]).arguments(arguments.clone());
        assert!(limited.fails(), "{number}: {:?}", limited.decision());
        for (condition, passes) in [
            ("context has arg_n", true),
            (r#"context.arg_n == decimal("100.0")"#, false),
            (r#"context.arg_n != decimal("0.0")"#, true),
            (r#"[decimal("100.0")].contains(context.arg_n)"#, false),
            (&format!("context.arg_n.number == {:?}", number.to_string()), true),
        ] {
            let request = Request::when(condition).arguments(arguments.clone());
            assert_eq!(request.is_allowed(), passes, "{number} {condition}");
        }
        for ordered in
            ["context.arg_n < 5", "context.arg_n like \"1*\"", "context.arg_n.lessThan(decimal(\"5.0\"))"]
        {
            assert!(Request::when(ordered).arguments(arguments.clone()).fails(), "{number} {ordered}");
        }
    }
}

#[test]
fn groups_come_from_the_first_claim_that_is_a_list() {
    let groups = |group_claim: &str, role_claim: &str, claims: Value| {
        ["a", "b", "c", "1"]
            .into_iter()
            .filter(|group| {
                let condition = format!("principal in THVGroup::{group:?}");
                let mut request = Request::when(&condition).claims(claims.clone());
                request.cedar.group_claim_name = group_claim.into();
                request.cedar.role_claim_name = role_claim.into();
                request.is_allowed()
            })
            .collect::<String>()
    };
    for (group_claim, role_claim, claims, expected) in [
        ("", "", json!({"groups": ["a", "b"], "roles": ["c"]}), "ab"),
        ("", "", json!({"roles": ["c"], "cognito:groups": ["a"]}), "c"),
        ("", "", json!({"cognito:groups": ["a"]}), "a"),
        ("", "", json!({"groups": "a", "roles": ["b"]}), "b"),
        ("", "", json!({"groups": [], "roles": ["b"]}), ""),
        ("", "", json!({"groups": ["a", 1, null, ["b"], {"c": 1}]}), "a"),
        ("teams", "", json!({"teams": ["b"], "groups": ["a"]}), "b"),
        ("teams", "", json!({"groups": ["a"]}), "a"),
        ("realm.access.roles", "", json!({"realm": {"access": {"roles": ["b"]}}, "groups": ["a"]}), "b"),
        ("realm.roles", "", json!({"realm": ["x"], "groups": ["a"]}), "a"),
        ("https://x.example/g", "", json!({"https://x.example/g": ["c"]}), "c"),
        ("", "roles", json!({"groups": ["a"], "roles": ["a", "c"]}), "ac"),
        ("", "realm.roles", json!({"groups": ["a"], "realm": {"roles": ["b"]}}), "ab"),
        ("", "", json!({}), ""),
    ] {
        assert_eq!(
            groups(group_claim, role_claim, claims.clone()),
            expected,
            "{group_claim} {role_claim} {claims}"
        );
    }
}

#[test]
fn groups_may_be_of_another_type() {
    let mut request = Request::when(r#"principal in Team::"a""#).claims(json!({"groups": ["a"]}));
    assert!(!request.is_allowed());
    request.cedar.group_entity_type = "Team".into();
    assert!(request.is_allowed());
}

#[test]
fn a_multi_valued_claim_is_a_string_and_a_set() {
    for scope in [json!(["read", "write"]), json!("read write")] {
        for condition in [
            r#"principal.claim_scope == "read write""#,
            r#"principal.claimset_scope == ["write", "read"]"#,
            r#"context.claimset_scope.contains("read")"#,
            r#"context.claim_scope like "*write*""#,
        ] {
            let mut request = Request::when(condition).claims(json!({"scope": scope, "other": ["x"]}));
            request.cedar.multi_valued_claims = vec!["scope".into(), "absent".into()];
            assert!(request.is_allowed(), "{condition}: {:?}", request.decision());
        }
    }
    let mut number = Request::when(r#"principal.claim_scope == decimal("1.0")"#).claims(json!({"scope": 1}));
    number.cedar.multi_valued_claims = vec!["scope".into()];
    assert!(number.is_allowed(), "a claim that has one value is unchanged");
}

#[test]
fn values_nested_deeper_than_ten_levels_are_omitted() {
    let nested = |levels: usize| (0..levels).fold(json!("x"), |value, _| json!({ "a": value }));
    let path = |levels: usize| format!("principal.claim_deep{}", ".a".repeat(levels));
    let request = |levels: usize| {
        Request::when(&format!("{} == \"x\"", path(levels))).claims(json!({"deep": nested(levels)}))
    };
    assert!(request(10).is_allowed());
    assert!(request(11).fails());
    let above = format!("{} == {{}}", path(10));
    assert!(Request::when(&above).claims(json!({"deep": nested(11)})).is_allowed());
}
