//! Arbitrary JSON is merged or rejected.

use proptest::{collection, prelude::*};
use serde_json::{Value, json};
use skep_strategic_merge::{merge_pod_template, validate_pod_template};

/// JSON whose keys are often those of pod templates or directives.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        prop::sample::select(vec![
            "metadata",
            "spec",
            "containers",
            "env",
            "name",
            "finalizers",
            "labels",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$setElementOrder/finalizers",
            "$setElementOrder",
            "$deleteFromPrimitiveList/finalizers",
            "$deleteFromPrimitiveList/containers",
            "$deleteFromPrimitiveList/",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["delete", "replace", "merge", "name", ""]).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(8, 64, 6, move |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// The same under a pod template's fields, so that it is validated.
fn arbitrary_template() -> impl Strategy<Value = Value> {
    let json = arbitrary_json;
    prop_oneof![
        json(),
        (json(), json()).prop_map(|(metadata, spec)| json!({"metadata": metadata, "spec": spec})),
        (json(), json()).prop_map(|(list, key)| json!({"spec": {
            "containers": list,
            "$setElementOrder/containers": key,
        }})),
        collection::vec((json(), json()), 0..3).prop_map(|items| {
            let items = items.into_iter().map(|(name, env)| json!({"name": name, "env": env}));
            json!({"spec": {"containers": items.collect::<Vec<_>>()}})
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_json_is_merged_or_refused(base in arbitrary_template(), patch in arbitrary_template()) {
        let valid = validate_pod_template(&patch);
        let merged = merge_pod_template(base, &patch);
        prop_assert!(valid.is_ok() || merged.is_err());
    }

    #[test]
    fn no_directive_stays(patch in arbitrary_template()) {
        if let Ok(merged) = merge_pod_template(json!({}), &patch) {
            prop_assert!(is_plain(&merged), "{merged}");
        }
    }
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            let is_directive = matches!(name.as_str(), "$patch" | "$retainKeys")
                || name.starts_with("$setElementOrder/")
                || name.starts_with("$deleteFromPrimitiveList/");
            !is_directive && !value.is_null() && is_plain(value)
        }),
        _ => true,
    }
}
