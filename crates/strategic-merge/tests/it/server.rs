//! The cases, on a real API server.

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use similar_asserts::assert_eq;
use skep_strategic_merge::merge_pod_template;
use skep_testkit::Namespace;

use crate::cases::{self, Case};

/// A Deployment whose template can be patched by the API server and by us.
pub(crate) struct Workload {
    api: Api<DynamicObject>,
    live: DynamicObject,
}

/// The result of a patch: the template as the API server then has it, or why it was rejected.
pub(crate) type Outcome = Result<Value, String>;

impl Workload {
    /// Creates it. A template without containers or labels gets some, because the API server requires them.
    pub(crate) async fn create(test: &Namespace, name: &str, mut template: Value) -> kube::Result<Self> {
        template["metadata"]["labels"] = json!({"app": "web"});
        if template["spec"]["containers"].is_null() {
            template["spec"]["containers"] = json!([{"name": "web", "image": "web:1"}]);
        }
        let kind = ApiResource::erase::<Deployment>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(test.client(), test.name(), &kind);
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
        let object = DynamicObject::new(name, &kind).data(json!({"spec": spec}));
        let live = api.create(&PostParams::default(), &object).await?;
        Ok(Self { api, live })
    }

    /// The template, patched by the API server.
    pub(crate) async fn patched_there(&self, patch: &Value) -> Outcome {
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        let patch = Patch::Strategic(json!({"spec": {"template": patch}}));
        template(self.api.patch(self.name(), &params, &patch).await)
    }

    /// The template, patched by us. The API server then fills in its defaults, which do not matter here.
    pub(crate) async fn patched_here(&self, patch: &Value) -> Outcome {
        let template_now = self.live.data["spec"]["template"].clone();
        let merged = merge_pod_template(template_now, patch).map_err(|error| error.to_string())?;
        let mut object = self.live.clone();
        object.data["spec"]["template"] = merged;
        let params = PostParams { dry_run: true, ..PostParams::default() };
        template(self.api.replace(self.name(), &params, &object).await)
    }

    fn name(&self) -> &str {
        self.live.metadata.name.as_deref().unwrap_or_default()
    }
}

fn template(answer: kube::Result<DynamicObject>) -> Outcome {
    answer.map(|object| object.data["spec"]["template"].clone()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_api_server_merges_the_same_way() {
    let test = skep_testkit::namespace().await;
    let cases = [cases::objects(), cases::lists(), cases::scalars_and_order()];
    for (index, Case { name, base, patch, .. }) in cases.into_iter().flatten().enumerate() {
        let workload = Workload::create(&test, &format!("merged-{index}"), base).await.expect(name);
        let there = workload.patched_there(&patch).await.expect(name);
        let here = workload.patched_here(&patch).await.expect(name);
        assert_eq!(here, there, "{name}");
    }
}

#[tokio::test]
async fn the_api_server_rejects_the_same_patches() {
    let test = skep_testkit::namespace().await;
    for (index, Case { name, base, patch, .. }) in cases::rejected().into_iter().enumerate() {
        let workload = Workload::create(&test, &format!("rejected-{index}"), base).await.expect(name);
        workload.patched_there(&patch).await.expect_err(name);
        workload.patched_here(&patch).await.expect_err(name);
    }
}
