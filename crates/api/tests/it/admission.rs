//! Objects that the API server accepts and rejects, for every kind and every constraint of its schema.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Client, core::Status};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skep_api::{crd, kinds};
use skep_testkit::Namespace;

use crate::{
    constraints::{self, Step, walk},
    specimens::{self, Specimen},
};

macro_rules! kinds {
    ($($kind:ident),+) => {
        $(
        #[allow(non_snake_case, reason = "tests are selected by the name of the kind")]
        mod $kind {
            use super::*;

            #[test]
            fn the_specimens_hold_every_field() {
                specimens::hold_every_field(stringify!($kind), &Kind::named(stringify!($kind)).schema());
            }

            #[test]
            fn specimens_survive_reading_and_writing() {
                survive::<kinds::$kind>(stringify!($kind));
            }

            #[tokio::test]
            async fn specimens_are_accepted() {
                accept_specimens(&Kind::named(stringify!($kind))).await;
            }

            #[tokio::test]
            async fn values_outside_an_enum_pattern_or_bound_are_rejected() {
                refuse_outsiders(&Kind::named(stringify!($kind))).await;
            }

            #[tokio::test]
            async fn what_violates_a_rule_is_rejected_with_its_message() {
                reject_violations(&Kind::named(stringify!($kind))).await;
            }
        }
        )+
    };
}

skep_api::for_each_kind!(kinds);

/// A kind by its stored version.
pub(crate) struct Kind {
    name: &'static str,
    crd: Value,
}

impl Kind {
    pub(crate) fn named(name: &'static str) -> Self {
        let crds = crd::crds().unwrap();
        let crd = crds.iter().find(|crd| crd.spec.names.kind == name).unwrap();
        Self { name, crd: crd::to_json(crd).unwrap() }
    }

    fn version(&self) -> &Value {
        self.crd["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|version| version["storage"] == true)
            .unwrap()
    }

    /// The schema of spec and status: the rest is the API server's own.
    fn schema(&self) -> Value {
        let mut schema = self.version()["schema"]["openAPIV3Schema"].clone();
        schema["properties"].as_object_mut().unwrap().retain(|name, _| name == "spec" || name == "status");
        schema
    }

    /// Where objects of the kind are in a namespace.
    fn path(&self, test: &Namespace) -> String {
        let (group, version) = (&self.crd["spec"]["group"], &self.version()["name"]);
        let plural = &self.crd["spec"]["names"]["plural"];
        format!("/apis/{group}/{version}/namespaces/{}/{plural}", test.name()).replace('"', "")
    }
}

/// Submits objects of one kind to the API server, and leaves nothing behind but the objects that statuses need.
struct Admission {
    client: Client,
    path: String,
}

impl Admission {
    async fn new(kind: &Kind) -> Self {
        let test = skep_testkit::namespace().await;
        Self { client: test.client(), path: kind.path(&test) }
    }

    /// What is wrong with the object, spec and status: nothing if it is accepted.
    async fn verdict(&self, object: &Value) -> Verdict {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", self.path);
        let mut trial = object.clone();
        // Not the name itself: an object of that name may exist for its status.
        trial["metadata"] = json!({"generateName": "trial-"});
        let request = http::Request::post(path).body(serde_json::to_vec(&trial).unwrap()).unwrap();
        let mut verdict = Verdict::of(self.client.request::<Value>(request).await);
        if verdict.accepts() && object.get("status").is_some() {
            verdict = self.status_verdict(object).await;
        }
        verdict
    }

    /// A status can only be set on an existing object.
    async fn status_verdict(&self, object: &Value) -> Verdict {
        let name = object["metadata"]["name"].as_str().unwrap();
        let create = http::Request::post(&self.path).body(serde_json::to_vec(object).unwrap()).unwrap();
        match self.client.request::<Value>(create).await {
            Err(kube::Error::Api(status)) if !status.is_already_exists() => {
                return Verdict::of(Err(kube::Error::Api(status)));
            }
            _ => {}
        }
        let path = format!("{}/{name}/status?dryRun=All&fieldValidation=Strict", self.path);
        let patch = serde_json::to_vec(&json!({"status": object["status"]})).unwrap();
        let request =
            http::Request::patch(path).header("content-type", "application/merge-patch+json").body(patch);
        Verdict::of(self.client.request::<Value>(request.unwrap()).await)
    }
}

/// The API server's verdict on an object.
#[derive(Debug)]
struct Verdict {
    error: Option<Box<Status>>,
}

impl Verdict {
    fn of(answer: kube::Result<Value>) -> Self {
        match answer {
            Ok(_) => Self { error: None },
            Err(kube::Error::Api(status)) => Self { error: Some(status) },
            Err(error) => panic!("no answer: {error}"),
        }
    }

    fn accepts(&self) -> bool {
        self.error.is_none()
    }

    /// The invalid fields, each with its message.
    fn causes(&self) -> Vec<(String, String)> {
        let details = self.error.as_ref().and_then(|status| status.details.as_ref());
        let causes = details.into_iter().flat_map(|details| &details.causes);
        causes.map(|cause| (cause.field.clone(), cause.message.clone())).collect()
    }

    fn blames(&self, field: &str) -> bool {
        self.causes().iter().any(|(at, _)| at == field)
    }
}

/// A JSON pointer as the API server writes a field: `/spec/tools/0/name` is `spec.tools[0].name`.
fn field_name(pointer: &str, path: &[Step]) -> String {
    let keys = pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~"));
    let names = keys.zip(path).map(|(key, step)| match step {
        Step::Item => format!("[{key}]"),
        Step::Field(_) | Step::Entry => format!(".{key}"),
    });
    names.collect::<String>().trim_start_matches('.').into()
}

fn survive<K: Serialize + DeserializeOwned>(kind: &str) {
    for Specimen { name, object } in specimens::of(kind) {
        let read: K =
            serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{kind}/{name}: {error}"));
        similar_asserts::assert_eq!(serde_json::to_value(read).unwrap(), object, "{kind}/{name}");
    }
}

async fn accept_specimens(kind: &Kind) {
    let admission = Admission::new(kind).await;
    for Specimen { name, object } in specimens::of(kind.name) {
        let verdict = admission.verdict(&object).await;
        assert!(verdict.accepts(), "{}/{name} is rejected: {:#?}", kind.name, verdict.error);
    }
}

async fn refuse_outsiders(kind: &Kind) {
    let admission = Admission::new(kind).await;
    let specimens = specimens::of(kind.name);
    let mut trials = Vec::new();
    walk(&kind.schema(), &mut |path, schema| {
        let place = specimens.iter().find_map(|s| Some((&s.object, specimens::locate(&s.object, path)?)));
        let Some((object, pointer)) = place else { return };
        let field = field_name(&pointer, path);
        for demand in constraints::demands(schema, object.pointer(&pointer).unwrap()) {
            let mut changed = object.clone();
            *changed.pointer_mut(&pointer).unwrap() = demand.outside;
            trials.push((field.clone(), demand.keyword, changed, false));
            if let Some(inside) = demand.inside {
                let mut changed = object.clone();
                *changed.pointer_mut(&pointer).unwrap() = inside;
                trials.push((field.clone(), demand.keyword, changed, true));
            }
        }
    });
    for (field, keyword, object, inside) in trials {
        let verdict = admission.verdict(&object).await;
        if inside {
            assert!(!verdict.blames(&field), "{keyword} of {field}: just inside, but {:?}", verdict.causes());
        } else {
            assert!(verdict.blames(&field), "{keyword} of {field}: just outside, but {:?}", verdict.error);
        }
    }
}

/// How to violate one rule, as described in the files under `rules/`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Violation {
    /// A piece of the rule's message.
    message: String,
    /// The field that the API server must name.
    field: String,
    /// The specimen to start from.
    specimen: String,
    /// Values to put at JSON pointers.
    #[serde(default)]
    set: BTreeMap<String, Value>,
    /// JSON pointers to the fields to remove.
    #[serde(default)]
    remove: Vec<String>,
}

impl Violation {
    fn object(&self, specimens: &[Specimen]) -> Value {
        let specimen = specimens.iter().find(|specimen| specimen.name == self.specimen);
        let mut object = specimen.unwrap_or_else(|| panic!("no specimen {}", self.specimen)).object.clone();
        for (pointer, value) in &self.set {
            let (parent, key) = self.parent(&mut object, pointer);
            match parent {
                Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
                parent => parent[&key] = value.clone(),
            }
        }
        for pointer in &self.remove {
            let (parent, key) = self.parent(&mut object, pointer);
            let removed = parent.as_object_mut().and_then(|map| map.remove(&key));
            assert!(removed.is_some(), "{}: nothing to remove at {pointer}", self.message);
        }
        object
    }

    fn parent<'a>(&self, object: &'a mut Value, pointer: &str) -> (&'a mut Value, String) {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("{}: no {parent}", self.message));
        (parent, key.replace("~1", "/").replace("~0", "~"))
    }
}

async fn reject_violations(kind: &Kind) {
    let mut untried = BTreeSet::new();
    walk(&kind.schema(), &mut |path, schema| {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            untried.insert((Step::join(path), rule["message"].as_str().unwrap().to_owned()));
        }
    });
    let file = specimens::folder("rules").join(format!("{}.yaml", kind.name));
    if untried.is_empty() {
        assert!(!file.exists(), "{} has no rules to violate", kind.name);
        return;
    }
    let admission = Admission::new(kind).await;
    let specimens = specimens::of(kind.name);
    for row in specimens::yaml::<Vec<Violation>>(&file) {
        let verdict = admission.verdict(&row.object(&specimens)).await;
        let causes = verdict.causes();
        let cause =
            causes.iter().find(|(field, message)| *field == row.field && message.contains(&row.message));
        assert!(cause.is_some(), "{:?} at {}: {causes:?}", row.message, row.field);
        let place = general(&row.field);
        untried.retain(|(path, message)| *path != place || !message.contains(&row.message));
    }
    assert!(untried.is_empty(), "no row violates: {untried:#?}");
}

/// A field as in the schema: `tools[0].name` is `tools[].name`.
fn general(field: &str) -> String {
    regex::Regex::new(r"\[\d+\]").unwrap().replace_all(field, "[]").into()
}
