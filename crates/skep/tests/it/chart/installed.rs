//! Both charts, installed by Helm itself.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use k8s_openapi::{
    api::{apps::v1::Deployment, rbac::v1::ClusterRole},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use skep_testkit::{ControlPlane, Namespace, install};

use super::file;

const KEEP: &str = "helm.sh/resource-policy";

/// The path of Helm, which is built once if the machine has none.
fn program() -> PathBuf {
    install("helm", &[]).unwrap()
}

/// Runs Helm, without the user's settings.
fn helm(namespace: &Namespace, arguments: &[&str]) -> Result<String, String> {
    let own = namespace.folder().join("helm");
    let output = Command::new(program())
        .args(arguments)
        .args(["--namespace", namespace.name(), "--kubeconfig"])
        .arg(namespace.admin("helm").kubeconfig_file())
        .envs(["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map(|name| (name, &own)))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

async fn crds(plane: &ControlPlane) -> BTreeMap<String, CustomResourceDefinition> {
    let api: Api<CustomResourceDefinition> = Api::all(plane.admin().client());
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.into_iter().map(|crd| (crd.metadata.name.clone().unwrap(), crd)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_charts_are_installed_upgraded_and_uninstalled_and_the_crds_stay() {
    let plane = ControlPlane::start().await;
    let system = plane.namespace().await;
    let (skep, skep_crds) = (file("skep").display().to_string(), file("skep-crds").display().to_string());

    // The CRDs exist already, as after an installation by another chart: Helm needs a flag to take them over.
    let before = crds(&plane).await;
    let error = helm(&system, &["install", "skep-crds", &skep_crds]).unwrap_err();
    assert!(error.contains("cannot be imported into the current release"), "{error}");
    helm(&system, &["install", "skep-crds", &skep_crds, "--take-ownership"]).unwrap();
    let after = crds(&plane).await;
    assert_eq!(after.len(), 14);
    for (name, crd) in &after {
        assert_eq!(crd.metadata.annotations.as_ref().unwrap()[KEEP], "keep", "{name}");
        assert_eq!(json!(crd.spec), json!(before[name].spec), "{name} is what the program prints");
    }

    helm(&system, &["install", "skep", &skep]).unwrap();
    let replicas = async || system.api::<Deployment>().get("skep").await.unwrap().spec.unwrap().replicas;
    assert_eq!(replicas().await, Some(1));
    let error = helm(&system, &["upgrade", "skep", &skep, "--set", "operator.replicas=2"]).unwrap_err();
    assert!(error.contains("replicas"), "{error}");
    let notes = helm(&system, &["upgrade", "skep", &skep, "--set", "operator.replicaCount=2"]).unwrap();
    assert!(notes.contains("rollout status deployment skep"), "{notes}");
    assert_eq!(replicas().await, Some(2));

    for release in ["skep", "skep-crds"] {
        helm(&system, &["uninstall", release]).unwrap();
    }
    let left: Api<ClusterRole> = Api::all(system.client());
    assert!(
        left.get_opt("skep").await.unwrap().is_none()
            && left.get_opt("skep-migration").await.unwrap().is_none()
    );
    assert_eq!(crds(&plane).await.len(), 14, "they stay, and with them all objects of users");
}

#[test]
fn the_crds_of_the_chart_are_those_of_the_program_with_or_without_the_keep_annotation() {
    let chart = file("skep-crds").display().to_string();
    let template = |values: &[&str]| -> Vec<Value> {
        let args = ["template", "crds", &chart];
        let output = Command::new(program()).args(args).args(values).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap()
    };
    let crds = skep_api::crd::crds().unwrap();
    let mut printed: Vec<Value> = crds.iter().map(|crd| skep_api::crd::to_json(crd).unwrap()).collect();
    let by_name = |crd: &Value| crd["metadata"]["name"].to_string();
    let sorted = |mut crds: Vec<Value>| {
        crds.sort_by_key(by_name);
        crds
    };
    printed.sort_by_key(by_name);
    assert_eq!(sorted(template(&["--set", "crds.keep=false"])), printed);
    for crd in &mut printed {
        crd["metadata"]["annotations"] = json!({KEEP: "keep"});
    }
    assert_eq!(sorted(template(&[])), printed);
    assert_eq!(template(&["--set", "crds.install=false"]), Vec::<Value>::new());
}
