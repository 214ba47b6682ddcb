//! The cases, without a server.

use serde_json::json;
use similar_asserts::assert_eq;
use skep_strategic_merge::{merge_pod_template, validate_pod_template};

use crate::cases::{self, Case};

fn hold(cases: Vec<Case>) {
    for Case { name, base, patch, merged } in cases {
        assert_eq!(merge_pod_template(base, &patch), Ok(merged), "{name}");
        assert_eq!(validate_pod_template(&patch), Ok(()), "{name}");
    }
}

#[test]
fn objects_are_merged_field_by_field() {
    hold(cases::objects());
}

#[test]
fn lists_are_merged_by_key_or_replaced() {
    hold(cases::lists());
}

#[test]
fn scalars_are_merged_as_sets_and_orders_are_set() {
    hold(cases::scalars_and_order());
}

#[test]
fn errors_have_a_path_and_a_message() {
    for Case { name, base, patch, merged } in cases::rejected() {
        let error = merge_pod_template(base, &patch).unwrap_err();
        assert_eq!(error.to_string(), merged.as_str().unwrap(), "{name}");
        assert!(error.to_string().starts_with(error.path()), "{name}");
    }
}

/// On the API server, either may come first: Go iterates over a map in random order.
#[test]
fn scalars_are_deleted_before_others_are_added() {
    let base = json!({"metadata": {"finalizers": ["x/a", "x/b"]}});
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["x/a", "x/c"],
        "finalizers": ["x/c"],
    }});
    let merged = json!({"metadata": {"finalizers": ["x/c", "x/b"]}});
    assert_eq!(merge_pod_template(base, &patch), Ok(merged));
}

/// On the API server, a limit of a new container that is null is a limit of zero.
#[test]
fn null_is_omitted_everywhere() {
    let base = json!({"spec": {"containers": [{"name": "web"}]}});
    let patch = json!({"spec": {"containers": [
        {"name": "log", "image": "log:1", "tty": null, "resources": {"limits": {"cpu": null, "memory": "1Gi"}}},
    ]}});
    let merged = json!({"spec": {"containers": [
        {"name": "log", "image": "log:1", "resources": {"limits": {"memory": "1Gi"}}},
        {"name": "web"},
    ]}});
    assert_eq!(merge_pod_template(base, &patch), Ok(merged));
}
