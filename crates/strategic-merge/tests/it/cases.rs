//! Templates, patches and results: the specification, which the API server has to satisfy as well.

use serde_json::{Value, json};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) base: Value,
    pub(crate) patch: Value,
    pub(crate) merged: Value,
}

macro_rules! cases {
    ($( $name:literal: $base:tt + $patch:tt = $merged:tt; )+) => {
        vec![ $( Case { name: $name, base: json!($base), patch: json!($patch), merged: json!($merged) }, )+ ]
    };
}

pub(crate) fn objects() -> Vec<Case> {
    cases! {
        "an empty patch changes nothing":
            {"spec": {"hostname": "a"}} + {} = {"spec": {"hostname": "a"}};
        "objects are merged field by field, scalars are replaced":
            {"spec": {"hostname": "a", "securityContext": {"runAsUser": 1, "fsGroup": 2}}}
            + {"spec": {"hostname": "b", "securityContext": {"runAsUser": 3}}}
            = {"spec": {"hostname": "b", "securityContext": {"runAsUser": 3, "fsGroup": 2}}};
        "null deletes a field":
            {"metadata": {"annotations": {"a": "1", "b": "2"}}, "spec": {"hostname": "a"}}
            + {"metadata": {"annotations": {"a": null}}, "spec": {"hostname": null}}
            = {"metadata": {"annotations": {"b": "2"}}, "spec": {}};
        "null for a field that is not there does nothing":
            {"spec": {}} + {"spec": {"securityContext": null, "nodeSelector": {"a": null, "b": "c"}}}
            = {"spec": {"nodeSelector": {"b": "c"}}};
        "$patch: replace keeps only what the patch contains":
            {"spec": {"securityContext": {"runAsUser": 1, "fsGroup": 2}}}
            + {"spec": {"securityContext": {"$patch": "replace", "runAsUser": 3}}}
            = {"spec": {"securityContext": {"runAsUser": 3}}};
        "$patch: delete empties an object":
            {"spec": {"nodeSelector": {"a": "b"}, "securityContext": {"runAsUser": 1}}}
            + {"spec": {"nodeSelector": {"$patch": "delete"}, "securityContext": {"$patch": "delete"}}}
            = {"spec": {"nodeSelector": {}, "securityContext": {}}};
        "an object with $patch goes where there is nothing to patch":
            {"spec": {}} + {"spec": {"securityContext": {"$patch": "replace", "runAsUser": 3}}} = {"spec": {}};
        "$retainKeys deletes all other keys":
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
            + {"spec": {"volumes": [
                {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}},
            ]}}
            = {"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}};
        "a quantity may be written as a number":
            {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
            + {"spec": {"containers": [{"name": "web", "resources": {"limits": {"cpu": 1}}}]}}
            = {"spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"limits": {"cpu": 1}}}]}};
    }
}

pub(crate) fn lists() -> Vec<Case> {
    cases! {
        "a list without a merge key is replaced":
            {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}
            + {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}}
            = {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}};
        "items with the same merge key are merged":
            {"spec": {"containers": [
                {"name": "web", "image": "web:1", "args": ["a"], "env": [{"name": "A", "value": "1"}]},
            ]}}
            + {"spec": {"containers": [
                {"name": "web", "args": ["b"], "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]},
            ]}}
            = {"spec": {"containers": [
                {"name": "web", "image": "web:1", "args": ["b"],
                 "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]},
            ]}};
        "new items come first":
            {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}}
            + {"spec": {"imagePullSecrets": [{"name": "d"}, {"name": "c"}]}}
            = {"spec": {"imagePullSecrets": [{"name": "d"}, {"name": "c"}, {"name": "a"}, {"name": "b"}]}};
        "new items come after the items that the patch names before them":
            {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}
            + {"spec": {"imagePullSecrets": [{"name": "b"}, {"name": "d"}]}}
            = {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "d"}, {"name": "c"}]}};
        "the order of the patch wins over the order of the template":
            {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}
            + {"spec": {"imagePullSecrets": [{"name": "c"}, {"name": "a"}]}}
            = {"spec": {"imagePullSecrets": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}};
        "$patch: delete deletes an item":
            {"spec": {"hostAliases": [{"ip": "::1", "hostnames": ["a"]}, {"ip": "::2", "hostnames": ["b"]}]}}
            + {"spec": {"hostAliases": [{"ip": "::1", "$patch": "delete"}]}}
            = {"spec": {"hostAliases": [{"ip": "::2", "hostnames": ["b"]}]}};
        "$patch: replace in a list keeps only the items of the patch":
            {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}}
            + {"spec": {"imagePullSecrets": [{"$patch": "replace"}, {"name": "c"}, {"name": "b"}]}}
            = {"spec": {"imagePullSecrets": [{"name": "c"}, {"name": "b"}]}};
        "an item with $patch goes where there is no list to patch":
            {"spec": {}}
            + {"spec": {"imagePullSecrets": [{"$patch": "replace"}, {"name": "a"}]}}
            = {"spec": {"imagePullSecrets": [{"name": "a"}]}};
        "nulls and directives in a new item are left out":
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
            + {"spec": {"volumes": [
                {"name": "w", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s", "optional": null}},
            ]}}
            = {"spec": {"volumes": [{"name": "w", "secret": {"secretName": "s"}}, {"name": "v", "emptyDir": {}}]}};
        "of two ports with one number, the first is the one that is merged":
            {"spec": {"containers": [{"name": "web", "image": "web:1", "ports": [
                {"name": "dns", "containerPort": 53, "protocol": "TCP"},
                {"name": "dns-udp", "containerPort": 53, "protocol": "UDP"},
            ]}]}}
            + {"spec": {"containers": [{"name": "web", "ports": [{"containerPort": 53, "name": "other"}]}]}}
            = {"spec": {"containers": [{"name": "web", "image": "web:1", "ports": [
                {"name": "other", "containerPort": 53, "protocol": "TCP"},
                {"name": "dns-udp", "containerPort": 53, "protocol": "UDP"},
            ]}]}};
    }
}

pub(crate) fn scalars_and_order() -> Vec<Case> {
    cases! {
        "a list of scalars without a strategy is replaced":
            {"spec": {"containers": [{"name": "web", "image": "web:1", "command": ["a", "b"]}]}}
            + {"spec": {"containers": [{"name": "web", "command": ["c"]}]}}
            = {"spec": {"containers": [{"name": "web", "image": "web:1", "command": ["c"]}]}};
        "finalizers are united":
            {"metadata": {"finalizers": ["x/a", "x/b"]}}
            + {"metadata": {"finalizers": ["x/b", "x/c"]}}
            = {"metadata": {"finalizers": ["x/a", "x/b", "x/c"]}};
        "$deleteFromPrimitiveList takes scalars out":
            {"metadata": {"finalizers": ["x/a", "x/b", "x/c"]}}
            + {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/b", "x/d"]}}
            = {"metadata": {"finalizers": ["x/a", "x/c"]}};
        "$deleteFromPrimitiveList works on lists without a strategy as well":
            {"spec": {"containers": [{"name": "web", "image": "web:1", "args": ["a", "b", "a"]}]}}
            + {"spec": {"containers": [{"name": "web", "$deleteFromPrimitiveList/args": ["a"]}]}}
            = {"spec": {"containers": [{"name": "web", "image": "web:1", "args": ["b"]}]}};
        "$deleteFromPrimitiveList for a list that is not there does nothing":
            {"metadata": {}} + {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}} = {"metadata": {}};
        "$setElementOrder orders the items":
            {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}
            + {"spec": {
                "$setElementOrder/imagePullSecrets": [{"name": "c"}, {"name": "a"}, {"name": "d"}, {"name": "b"}],
                "imagePullSecrets": [{"name": "d"}],
            }}
            = {"spec": {"imagePullSecrets": [{"name": "c"}, {"name": "a"}, {"name": "d"}, {"name": "b"}]}};
        "$setElementOrder leaves the items that it does not name in the template's order":
            {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]}}
            + {"spec": {"$setElementOrder/imagePullSecrets": [{"name": "d"}, {"name": "b"}]}}
            = {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "c"}, {"name": "d"}, {"name": "b"}]}};
        "$setElementOrder does not name what is deleted":
            {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}
            + {"spec": {
                "$setElementOrder/imagePullSecrets": [{"name": "c"}, {"name": "b"}],
                "imagePullSecrets": [{"name": "a", "$patch": "delete"}],
            }}
            = {"spec": {"imagePullSecrets": [{"name": "c"}, {"name": "b"}]}};
        "$setElementOrder orders a list that only the patch has":
            {"spec": {}}
            + {"spec": {
                "$setElementOrder/imagePullSecrets": [{"name": "b"}, {"name": "a"}],
                "imagePullSecrets": [{"name": "b"}, {"name": "a"}],
            }}
            = {"spec": {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]}};
        "$setElementOrder orders scalars":
            {"metadata": {"finalizers": ["x/a", "x/b"]}}
            + {"metadata": {
                "$setElementOrder/finalizers": ["x/c", "x/a"],
                "$deleteFromPrimitiveList/finalizers": ["x/b"],
                "finalizers": ["x/c"],
            }}
            = {"metadata": {"finalizers": ["x/c", "x/a"]}};
        "$setElementOrder of a list that neither side has does nothing":
            {"spec": {}} + {"spec": {"$setElementOrder/volumes": [{"name": "a"}]}} = {"spec": {}};
    }
}

/// Invalid patches, with their errors.
pub(crate) fn rejected() -> Vec<Case> {
    cases! {
        "an item of a merged list has its merge key":
            {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
            + {"spec": {"containers": [{"name": "web"}, {"image": "web:2"}]}}
            = "podTemplateSpec.spec.containers[1]: name is missing, and containers are merged by it";
        "so has an item that is to be deleted":
            {"spec": {"imagePullSecrets": [{"name": "a"}]}}
            + {"spec": {"imagePullSecrets": [{"$patch": "delete"}]}}
            = "podTemplateSpec.spec.imagePullSecrets[0]: name is missing, and imagePullSecrets are merged by it";
        "a list is a list":
            {"spec": {}}
            + {"spec": {"containers": "web"}}
            = "podTemplateSpec.spec.containers: invalid type: string \"web\", expected a sequence";
        "an object is an object":
            {"spec": {}}
            + {"spec": {"containers": [{"name": "web", "securityContext": [1]}]}}
            = "podTemplateSpec.spec.containers[0].securityContext: invalid type: sequence, expected SecurityContext";
        "objects can be deleted and replaced, and merge is not a word for it":
            {"spec": {"securityContext": {"runAsUser": 1}}}
            + {"spec": {"securityContext": {"$patch": "merge"}}}
            = "podTemplateSpec.spec.securityContext.$patch: \"merge\" is not a known directive: write delete or replace";
        "nor is it in lists":
            {"spec": {"imagePullSecrets": [{"name": "a"}]}}
            + {"spec": {"imagePullSecrets": [{"name": "a", "$patch": "merge"}]}}
            = "podTemplateSpec.spec.imagePullSecrets[0].$patch: \"merge\" is not a known directive: write delete or replace";
        "$retainKeys names all keys of the patch":
            {"spec": {"securityContext": {"runAsUser": 1}}}
            + {"spec": {"securityContext": {"$retainKeys": ["fsGroup"], "runAsUser": 2}}}
            = "podTemplateSpec.spec.securityContext: runAsUser is not among the $retainKeys, and the patch sets it";
        "$setElementOrder names all items of the patch":
            {"spec": {"imagePullSecrets": [{"name": "a"}]}}
            + {"spec": {"$setElementOrder/imagePullSecrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}]}}
            = "podTemplateSpec.spec.$setElementOrder/imagePullSecrets: lists its items in another order than the patch does, or not all of them";
        "$setElementOrder is about lists that are merged":
            {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}
            + {"spec": {"$setElementOrder/tolerations": [{"key": "a"}]}}
            = "podTemplateSpec.spec.$setElementOrder/tolerations[0]: the list is replaced as a whole, so the order of its items cannot be set";
        "$deleteFromPrimitiveList is about scalars":
            {"spec": {"imagePullSecrets": [{"name": "a"}]}}
            + {"spec": {"$deleteFromPrimitiveList/imagePullSecrets": ["a"]}}
            = "podTemplateSpec.spec.$deleteFromPrimitiveList/imagePullSecrets: the items of the list are objects: delete them with `$patch: delete`";
    }
}
