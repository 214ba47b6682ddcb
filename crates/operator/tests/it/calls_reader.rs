//! Who may read the calls of proxies, which the installation decides.

use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_operator::{render::render, settings::Settings};

const READER: &str = "system:serviceaccount:skep-system:skep-console";

fn object(kind: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": kind,
        "metadata": {"name": kind.to_lowercase(), "namespace": "default"}, "spec": spec,
    }))
    .unwrap()
}

/// The readers in the Deployments of a server, a remote proxy and a virtual server.
async fn readers(settings: Settings, overrides: &Value) -> Vec<Vec<Value>> {
    let objects = vec![
        object("MCPGroup", json!({})),
        object(
            "MCPServer",
            json!({"image": "example", "transport": "stdio", "groupRef": {"name": "mcpgroup"}, "resourceOverrides": overrides}),
        ),
        object("MCPRemoteProxy", json!({"remoteUrl": "https://mcp.example", "resourceOverrides": overrides})),
        object(
            "VirtualMCPServer",
            json!({
                "groupRef": {"name": "mcpgroup"}, "incomingAuth": {"type": "anonymous"},
                "outgoingAuth": {"source": "inline"},
            }),
        ),
    ];
    let rendered = render(objects, settings).await.unwrap();
    let children = rendered.iter().flat_map(|rendered| rendered.children.as_ref().unwrap());
    let deployments = children.filter(|child| child.kind.kind == "Deployment");
    let of_deployment = |deployment: Value| {
        let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
        let readers = env.into_iter().filter(|variable| variable["name"] == "SKEP_CALLS_READER");
        readers.map(|variable| variable["value"].clone()).collect::<Vec<_>>()
    };
    deployments.map(|child| of_deployment(child.body().clone())).collect()
}

#[tokio::test]
async fn proxies_learn_whose_token_they_accept_and_users_cannot_change_it() {
    let settings = || Settings { calls_reader: Some(READER.into()), ..Settings::default() };
    assert_eq!(readers(settings(), &json!(null)).await, [[READER]; 3]);
    let env = json!([{"name": "SKEP_CALLS_READER", "value": "system:serviceaccount:theirs:thief"}]);
    assert_eq!(readers(settings(), &json!({"proxyDeployment": {"env": env}})).await, [[READER]; 3]);
    assert_eq!(readers(Settings::default(), &json!(null)).await, [[] as [&str; 0]; 3]);
}
