//! The fields that are left of a struct after a Go program decoded and encoded it.
//!
//! With `omitempty` Go omits a zero: the API server does not return `hostNetwork: false`. A zero behind a pointer is a
//! value like any other and stays.

use serde_json::{Map, Value};

use super::types::{Struct, Type};

/// The fields of a struct that Go keeps. Fields that the table does not have stay: a newer Kubernetes may know them.
pub fn without_zeros(of: &Struct, fields: Map<String, Value>) -> Map<String, Value> {
    let type_of = |name: &str| of.0.iter().find(|field| field.name == name);
    let kept = fields.into_iter().filter_map(|(name, value)| match type_of(&name) {
        Some(field) if field.omit_empty && is_zero(&field.of, &value) => None,
        Some(field) => Some((name, kept(&field.of, value))),
        None => Some((name, value)),
    });
    kept.collect()
}

fn kept(of: &Type, value: Value) -> Value {
    match (of, value) {
        (Type::Struct(of), Value::Object(fields)) => Value::Object(without_zeros(of, fields)),
        (Type::List(of), Value::Array(items)) => items.into_iter().map(|item| kept(of, item)).collect(),
        (Type::Map(of), Value::Object(entries)) => {
            entries.into_iter().map(|(name, value)| (name, kept(of, value))).collect()
        }
        (Type::Pointer(of), value) => kept(of, value),
        (_, value) => value,
    }
}

fn is_zero(of: &Type, value: &Value) -> bool {
    match (of, value) {
        (Type::Bool, Value::Bool(flag)) => !flag,
        (Type::Int, Value::Number(number)) => number.as_i64() == Some(0),
        (Type::Text, Value::String(text)) => text.is_empty(),
        (Type::List(_), Value::Array(items)) => items.is_empty(),
        (Type::Map(_), Value::Object(entries)) => entries.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structs::POD_TEMPLATE_SPEC;

    #[test]
    fn zeros_are_dropped_except_behind_pointers() {
        let template = json!({"metadata": {"labels": {}, "annotations": {"note": ""}}, "spec": {
            "hostNetwork": false, "shareProcessNamespace": false, "terminationGracePeriodSeconds": 0, "tolerations": [],
            "containers": [{
                "name": "a", "tty": false, "env": [{"name": "X", "value": ""}], "resources": {},
                "livenessProbe": {"periodSeconds": 0, "httpGet": {"port": 0, "path": ""}},
                "securityContext": {"privileged": false},
            }],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "ofNewerKubernetes": false,
        }});
        let expected = json!({"metadata": {"annotations": {"note": ""}}, "spec": {
            "shareProcessNamespace": false, "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "a", "env": [{"name": "X"}], "resources": {},
                "livenessProbe": {"httpGet": {"port": 0}},
                "securityContext": {"privileged": false},
            }],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "ofNewerKubernetes": false,
        }});
        let kept = without_zeros(POD_TEMPLATE_SPEC, template.as_object().unwrap().clone());
        assert_eq!(Value::Object(kept), expected);
    }
}
