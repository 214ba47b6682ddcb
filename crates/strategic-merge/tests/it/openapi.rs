//! Every list below a PodTemplateSpec is merged as the API server's OpenAPI document specifies.

use http::Request;
use serde_json::{Value, json};
use similar_asserts::assert_eq;
use skep_strategic_merge::merge_pod_template;

#[tokio::test]
async fn every_list_is_merged_as_the_openapi_document_specifies() {
    let test = skep_testkit::namespace().await;
    let request = Request::get("/openapi/v2").body(Vec::new()).unwrap();
    let document = Document(test.client().request(request).await.unwrap());
    let mut lists = Vec::new();
    document.collect(&document.0["definitions"]["io.k8s.api.core.v1.PodTemplateSpec"], &[], &mut lists);

    let merged = lists.iter().filter(|list| list.strategy != Strategy::Replaced).count();
    assert!(merged >= 20 && lists.len() > 2 * merged, "{merged} of {} lists", lists.len());
    for list in &lists {
        list.hold();
    }
}

/// A list somewhere below a PodTemplateSpec.
struct List {
    steps: Vec<Step>,
    strategy: Strategy,
    items: Value,
}

/// From an object to one of its fields, and into an item if the field is a list that is merged by a key.
#[derive(Clone)]
struct Step {
    field: String,
    item: Option<(String, Value)>,
}

#[derive(PartialEq)]
enum Strategy {
    Keyed(String),
    Set,
    Replaced,
}

struct Document(Value);

impl Document {
    /// Adds the lists below an object. Those inside replaced lists are not among them: nothing is merged there.
    fn collect(&self, schema: &Value, steps: &[Step], lists: &mut Vec<List>) {
        let properties = self.resolve(schema)["properties"].as_object();
        for (field, property) in properties.into_iter().flatten() {
            let to = |item| [steps, &[Step { field: field.clone(), item }]].concat();
            let Some(items) = property.get("items").map(|items| self.resolve(items)) else {
                self.collect(property, &to(None), lists);
                continue;
            };
            let strategy = Strategy::of(property);
            if let Strategy::Keyed(key) = &strategy {
                let id = sample(&items["properties"][key], 0);
                self.collect(items, &to(Some((key.clone(), id))), lists);
            }
            lists.push(List { steps: to(None), strategy, items: items.clone() });
        }
    }

    fn resolve<'v>(&'v self, schema: &'v Value) -> &'v Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/definitions/")) {
            Some(name) => &self.0["definitions"][name],
            None => schema,
        }
    }
}

impl Strategy {
    fn of(property: &Value) -> Self {
        let strategies = property["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
        if !strategies.split(',').any(|strategy| strategy == "merge") {
            return Self::Replaced;
        }
        match property["x-kubernetes-patch-merge-key"].as_str() {
            Some(key) => Self::Keyed(key.to_owned()),
            None => Self::Set,
        }
    }
}

impl List {
    /// Merges two lists of one item each: any other strategy or key has another result.
    fn hold(&self) {
        let [first, second] = [0, 1].map(|number| match &self.strategy {
            Strategy::Keyed(key) => json!({key: sample(&self.items["properties"][key], number)}),
            Strategy::Set | Strategy::Replaced => sample(&self.items, number),
        });
        let merged = match &self.strategy {
            Strategy::Replaced => json!([second]),
            Strategy::Keyed(_) | Strategy::Set => json!([second, first]),
        };
        let template = |list| self.steps.iter().rfold(list, |value, step| step.around(value));
        assert_eq!(
            merge_pod_template(template(json!([first])), &template(json!([second]))),
            Ok(template(merged)),
            "{}",
            self.steps.iter().map(|step| step.field.as_str()).collect::<Vec<_>>().join(".")
        );
    }
}

impl Step {
    fn around(&self, mut value: Value) -> Value {
        if let Some((key, id)) = &self.item {
            value[key] = id.clone();
            value = json!([value]);
        }
        json!({&self.field: value})
    }
}

/// A value of this schema; another one for another number, unless it is an object.
fn sample(schema: &Value, number: u8) -> Value {
    match schema["type"].as_str() {
        Some("string") => json!(number.to_string()),
        Some("integer") => json!(number),
        _ => json!({}),
    }
}
