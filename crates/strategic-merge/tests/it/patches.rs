//! Patches of all sorts for one template.

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
};
use serde_json::{Map, Value, json};

/// The template that the patches are for.
pub(crate) fn template() -> Value {
    json!({
        "metadata": {"annotations": {"a": "1", "b": "2"}, "finalizers": ["x/a", "x/b", "x/c"]},
        "spec": {
            "containers": [
                {
                    "name": "a",
                    "image": "a:1",
                    "args": ["x", "y", "z"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
                    "ports": [{"containerPort": 1}, {"containerPort": 2}],
                    "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/b"}],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                },
                {"name": "b", "image": "b:1"},
                {"name": "c", "image": "c:1"},
            ],
            "imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            "securityContext": {"runAsUser": 1, "fsGroup": 2},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {"medium": "Memory"}}],
        },
    })
}

/// Patches that the API server mostly accepts.
pub(crate) fn patches() -> impl Strategy<Value = Value> {
    object([("metadata", metadata()), ("spec", spec())])
}

fn metadata() -> BoxedStrategy<Value> {
    let finalizers =
        || subsequence(vec!["x/a", "x/b", "x/d", "x/e"], 0..4).prop_shuffle().prop_map(Value::from);
    // Not both: their order is random on the API server.
    let finalizers = prop_oneof![
        finalizers().prop_map(|names| ("finalizers", names)),
        finalizers().prop_map(|names| ("$deleteFromPrimitiveList/finalizers", names)),
    ];
    // No nulls in what replaces a map of strings: the API server decodes them as empty strings.
    let annotations = prop_oneof![
        object([("a", or_null(Just(json!("3")))), ("c", or_null(Just(json!("4"))))]),
        or_directive(object([("a", Just(json!("3")).boxed()), ("c", Just(json!("4")).boxed())])),
    ];
    (option::of(finalizers), object([("annotations", annotations.boxed())]))
        .prop_map(|(finalizers, mut metadata)| {
            if let Some((key, names)) = finalizers {
                metadata[key] = names;
            }
            metadata
        })
        .boxed()
}

fn spec() -> BoxedStrategy<Value> {
    let security = object([("runAsUser", or_null(Just(json!(5)))), ("fsGroup", or_null(Just(json!(6))))]);
    let tolerations = vec(select(vec!["b", "c"]), 0..3).prop_map(|keys| {
        keys.into_iter().map(|key| json!({"key": key, "operator": "Exists"})).collect::<Value>()
    });
    let volume = select(vec![
        json!({"$retainKeys": ["name", "configMap"], "configMap": {"name": "c", "optional": null}}),
        json!({"emptyDir": {"sizeLimit": 1}}),
        json!({"emptyDir": {"$patch": "replace", "sizeLimit": "1Gi"}}),
    ]);
    let spec = object([
        ("containers", items("name", strings(["a", "b", "c", "d", "e"]), container())),
        ("initContainers", items("name", strings(["i", "j"]), container())),
        ("imagePullSecrets", or_null(items("name", strings(["a", "b", "c", "d"]), Just(json!({}))))),
        ("securityContext", or_null(or_directive(security))),
        ("tolerations", or_null(tolerations)),
        ("volumes", items("name", strings(["a", "c"]), volume)),
    ]);
    let spec = in_order(spec, "containers", vec!["a", "b", "c", "d", "e"]);
    in_order(spec, "imagePullSecrets", vec!["d", "c", "b", "a"])
}

fn container() -> BoxedStrategy<Value> {
    let variable = object([("value", or_null(Just(json!("v"))))]);
    let limits = object([("cpu", Just(json!(2)).boxed()), ("memory", Just(json!("2Gi")).boxed())]);
    let port = object([("protocol", Just(json!("TCP")).boxed())]);
    let fields = object([
        ("args", vec(select(vec!["x", "y"]), 0..3).prop_map(Value::from).boxed()),
        ("env", or_null(items("name", strings(["A", "B", "C", "D", "E"]), variable))),
        ("ports", items("containerPort", vec![json!(1), json!(2), json!(3)], port)),
        ("volumeMounts", items("mountPath", strings(["/a", "/b", "/c"]), Just(json!({"name": "a"})))),
        ("resources", or_directive(object([("limits", limits)]))),
        ("tty", or_null(any::<bool>().prop_map(Value::from))),
    ]);
    let image = |mut container: Value| {
        container["image"] = json!("new:1");
        container
    };
    fields.prop_map(image).boxed()
}

/// Objects with some of these fields.
fn object<const N: usize>(fields: [(&'static str, BoxedStrategy<Value>); N]) -> BoxedStrategy<Value> {
    let fields = fields.map(|(name, value)| (Just(name.to_owned()), option::of(value)));
    let present = |(name, value): (String, Option<Value>)| value.map(|value| (name, value));
    Vec::from(fields)
        .prop_map(move |fields| fields.into_iter().filter_map(present).collect::<Map<_, _>>().into())
        .boxed()
}

/// Items of a merged list, each under one of these keys, some to be deleted; now and then the list is replaced.
fn items(
    key: &'static str,
    keys: Vec<Value>,
    item: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Value> {
    let count = keys.len();
    let item = (item, prop::bool::weighted(0.15)).prop_map(|(mut item, delete)| {
        if delete {
            item["$patch"] = json!("delete");
        }
        item
    });
    (subsequence(keys, 0..=count).prop_shuffle(), vec(item, count), prop::bool::weighted(0.08))
        .prop_map(move |(keys, items, replace)| {
            let with_key = |(id, mut item): (Value, Value)| {
                item[key] = id;
                item
            };
            let marker = replace.then(|| json!({"$patch": "replace"}));
            marker.into_iter().chain(keys.into_iter().zip(items).map(with_key)).collect()
        })
        .boxed()
}

/// The same objects, of which some set the order of a list, and follow it.
fn in_order(
    objects: BoxedStrategy<Value>,
    list: &'static str,
    names: Vec<&'static str>,
) -> BoxedStrategy<Value> {
    (objects, option::weighted(0.4, Just(names).prop_shuffle()))
        .prop_map(move |(mut object, order)| {
            let Some(order) = order else { return object };
            if let Some(items) = object.get_mut(list).and_then(Value::as_array_mut) {
                items.sort_by_key(|item| order.iter().position(|name| item["name"] == *name));
            }
            object[format!("$setElementOrder/{list}")] =
                order.into_iter().map(|name| json!({"name": name})).collect();
            object
        })
        .boxed()
}

fn or_null(values: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![9 => values, 1 => Just(Value::Null)].boxed()
}

/// The objects, of which some replace or delete what they would be merged with.
fn or_directive(objects: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let directive = prop_oneof![8 => Just(None), 1 => Just(Some("replace")), 1 => Just(Some("delete"))];
    (objects, directive)
        .prop_map(|(mut object, directive)| {
            if let Some(directive) = directive {
                object["$patch"] = json!(directive);
            }
            object
        })
        .boxed()
}

fn strings<const N: usize>(values: [&str; N]) -> Vec<Value> {
    values.map(Value::from).into()
}
