//! What `validate_pod_template` accepts and rejects, and invalid templates.

use serde_json::{Value, json};
use skep_strategic_merge::{merge_pod_template, validate_pod_template};

#[test]
fn a_patch_need_not_be_complete() {
    for patch in [
        json!({}),
        json!({"metadata": null, "spec": null}),
        json!({"spec": {}}),
        json!({"spec": {"containers": null}}),
        json!({"spec": {"containers": [{"image": "no name yet"}]}}),
        json!({"metadata": {"creationTimestamp": null, "labels": {"a": null}}}),
        json!({"metadata": {"labels": {"$retainKeys": ["a"], "a": "b"}}}),
        json!({"spec": {"aFieldOfTomorrow": [{"deep": null}]}}),
        json!({"spec": {"containers": [{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]}}),
    ] {
        assert_eq!(validate_pod_template(&patch), Ok(()), "{patch}");
    }
}

#[test]
fn a_wrong_type_is_named_with_its_path() {
    for (patch, message) in [
        (json!(null), "podTemplateSpec: null instead of an object"),
        (json!([1]), "podTemplateSpec: a list instead of an object"),
        (
            json!({"spec": {"containers": [{}, {"ports": [{"containerPort": "http"}]}]}}),
            "podTemplateSpec.spec.containers[1].ports[0].containerPort: \
             invalid type: string \"http\", expected i32",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "podTemplateSpec.metadata.labels.a: invalid type: integer `1`, expected a string",
        ),
        (
            json!({"spec": {"containers": [null]}}),
            "podTemplateSpec.spec.containers[0]: invalid type: null, expected Container",
        ),
    ] {
        assert_eq!(validate_pod_template(&patch).unwrap_err().to_string(), message);
    }
}

#[test]
fn an_invalid_template_is_an_error_as_well() {
    let patch = json!({"spec": {"containers": [{"name": "a"}], "securityContext": {"fsGroup": 1}}});
    for (template, message) in [
        (json!([]), "podTemplateSpec: an object that cannot be merged with a list of the template"),
        (
            json!({"spec": 1}),
            "podTemplateSpec.spec: an object that cannot be merged with a number of the template",
        ),
        (
            json!({"spec": {"containers": {}}}),
            "podTemplateSpec.spec.containers: a list that cannot be merged with an object of the template",
        ),
        (
            json!({"spec": {"containers": [{"name": "a"}, {}]}}),
            "podTemplateSpec.spec.containers: name is missing in item 1 of the template, and containers are merged by it",
        ),
        (
            json!({"spec": {"containers": ["a"]}}),
            "podTemplateSpec.spec.containers: an object that cannot be merged with a string of the template",
        ),
    ] {
        assert_eq!(merge_pod_template(template, &patch).unwrap_err().to_string(), message);
    }
    assert_eq!(merge_pod_template(Value::Null, &patch), Ok(patch.clone()), "no template is an empty one");
}
