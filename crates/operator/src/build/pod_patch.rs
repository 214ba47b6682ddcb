//! The patch for the pods of an MCP server, which its proxy gets as a flag and merges into the pod template that it
//! creates.

use serde_json::{Value, json};
use skep_api::{RawObject, kinds::SecretEnv};
use skep_config::objects::MCP_CONTAINER;
use skep_gocompat::structs::{EncodeError, POD_TEMPLATE_SPEC, encode};
use skep_strategic_merge::validate_pod_template;

/// A pod template that cannot be converted to a patch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Invalid(#[from] skep_strategic_merge::Error),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The user's template with the pods' ServiceAccount and with variables for the secrets, as JSON.
///
/// The text is the one that ToolHive's operator writes: it is an argument of the proxy, so any other text would
/// restart every proxy when a cluster is taken over. Therefore the encoding follows Go's structs.
pub(crate) fn pod_patch(
    template: Option<&RawObject>,
    service_account: &str,
    secrets: &[SecretEnv],
) -> Result<String, Error> {
    let mut patch = match template {
        Some(RawObject(fields)) => Value::Object(fields.clone()),
        None => json!({"spec": {"containers": []}}),
    };
    validate_pod_template(&patch)?;
    // From here on, every known field has its type or is null, and indexing turns null into an object.
    let spec = &mut patch["spec"];
    spec["serviceAccountName"] = service_account.into();
    if !secrets.is_empty() {
        edit(&mut spec["containers"], |containers| add_secrets(containers, secrets));
    }
    let patch = encode(POD_TEMPLATE_SPEC, &patch).map_err(|error| error.under("podTemplateSpec"))?;
    Ok(patch.as_str().to_owned())
}

fn add_secrets(containers: &mut Vec<Value>, secrets: &[SecretEnv]) {
    let server = containers.iter().position(|container| container["name"] == MCP_CONTAINER);
    let server = server.unwrap_or_else(|| {
        containers.push(json!({"name": MCP_CONTAINER}));
        containers.len() - 1
    });
    edit(&mut containers[server]["env"], |env| {
        for secret in secrets {
            let variable = variable(secret);
            // Server-side apply, with which the proxy writes, rejects duplicate variables.
            env.retain(|other| other["name"] != variable["name"]);
            env.push(variable);
        }
    });
}

fn variable(SecretEnv { name, key, target_env_name }: &SecretEnv) -> Value {
    let variable = target_env_name.as_ref().filter(|variable| !variable.is_empty()).unwrap_or(key);
    json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}})
}

/// Changes a list that may be null.
fn edit(list: &mut Value, change: impl FnOnce(&mut Vec<Value>)) {
    let mut items = if let Value::Array(items) = list.take() { items } else { Vec::new() };
    change(&mut items);
    *list = Value::Array(items);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(template: Value, secrets: &[SecretEnv]) -> Result<String, Error> {
        let template = serde_json::from_value(template).unwrap();
        pod_patch(Some(&template), "fetch-sa", secrets)
    }

    fn secret(name: &str, key: &str, variable: Option<&str>) -> SecretEnv {
        SecretEnv { name: name.into(), key: key.into(), target_env_name: variable.map(Into::into) }
    }

    #[test]
    fn without_a_template_the_patch_sets_only_the_service_account() {
        assert_eq!(
            pod_patch(None, "fetch-sa", &[]).unwrap(),
            r#"{"metadata":{},"spec":{"containers":[],"serviceAccountName":"fetch-sa"}}"#
        );
    }

    #[test]
    fn containers_that_a_template_does_not_have_are_null() {
        let expected = r#"{"metadata":{},"spec":{"containers":null,"serviceAccountName":"fetch-sa"}}"#;
        for template in [json!({}), json!({"spec": null}), json!({"spec": {"containers": null}})] {
            assert_eq!(patch(template, &[]).unwrap(), expected);
        }
    }

    #[test]
    fn the_service_account_overrides_the_users() {
        let template =
            json!({"spec": {"containers": [], "serviceAccountName": "root", "serviceAccount": "old"}});
        assert_eq!(
            patch(template, &[]).unwrap(),
            r#"{"metadata":{},"spec":{"containers":[],"serviceAccountName":"fetch-sa","serviceAccount":"old"}}"#
        );
    }

    #[test]
    fn secrets_become_variables_of_the_servers_container_which_comes_last_if_it_is_new() {
        let template = json!({"spec": {"containers": [{"name": "log"}]}});
        let secrets = [secret("tokens", "API", None), secret("tokens", "api", Some("TOKEN"))];
        similar_asserts::assert_eq!(
            patch(template, &secrets).unwrap(),
            concat!(
                r#"{"metadata":{},"spec":{"containers":[{"name":"log","resources":{}},{"name":"mcp","env":["#,
                r#"{"name":"API","valueFrom":{"secretKeyRef":{"name":"tokens","key":"API"}}},"#,
                r#"{"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"tokens","key":"api"}}}"#,
                r#"],"resources":{}}],"serviceAccountName":"fetch-sa"}}"#,
            )
        );
    }

    #[test]
    fn a_secret_replaces_a_variable_of_its_name() {
        let env = json!([{"name": "TOKEN", "value": "plain"}, {"name": "MODE", "value": "fast"}]);
        let template = json!({"spec": {"containers": [{"name": "mcp", "env": env}, {"name": "log"}]}});
        let secrets = [secret("old", "TOKEN", None), secret("new", "key", Some("TOKEN"))];
        similar_asserts::assert_eq!(
            patch(template, &secrets).unwrap(),
            concat!(
                r#"{"metadata":{},"spec":{"containers":[{"name":"mcp","env":[{"name":"MODE","value":"fast"},"#,
                r#"{"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"new","key":"key"}}}"#,
                r#"],"resources":{}},{"name":"log","resources":{}}],"serviceAccountName":"fetch-sa"}}"#,
            )
        );
    }

    #[test]
    fn fields_have_the_order_of_go_and_unknown_ones_are_dropped() {
        let template = json!({
            "spec": {
                "tolerations": [{"effect": "NoSchedule", "key": "gpu", "operator": "Exists"}],
                "containers": [{"$patch": "merge", "image": "mcp:1", "name": "mcp", "nmae": "typo"}],
                "volumes": [{"emptyDir": {}, "name": "cache"}],
            },
            "metadata": {"labels": {"b": "2", "a": "1"}, "name": "x"},
            "kind": "PodTemplateSpec",
        });
        similar_asserts::assert_eq!(
            patch(template, &[]).unwrap(),
            concat!(
                r#"{"metadata":{"name":"x","labels":{"a":"1","b":"2"}},"#,
                r#""spec":{"volumes":[{"name":"cache","emptyDir":{}}],"#,
                r#""containers":[{"name":"mcp","image":"mcp:1","resources":{}}],"serviceAccountName":"fetch-sa","#,
                r#""tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]}}"#,
            )
        );
    }

    #[test]
    fn empty_values_are_dropped_unless_go_requires_or_points_to_them() {
        let template = json!({
            "metadata": {"creationTimestamp": null, "labels": {}, "annotations": {"note": ""}},
            "spec": {
                "hostNetwork": false,
                "hostUsers": false,
                "nodeName": "",
                "priority": 0,
                "securityContext": {},
                "containers": [{"args": [], "tty": false, "livenessProbe": {
                    "periodSeconds": 0,
                    "terminationGracePeriodSeconds": 0,
                    "grpc": {},
                }}],
            },
        });
        similar_asserts::assert_eq!(
            patch(template, &[]).unwrap(),
            concat!(
                r#"{"metadata":{"annotations":{"note":""}},"spec":{"containers":[{"name":"","resources":{},"#,
                r#""livenessProbe":{"grpc":{"port":0,"service":null},"terminationGracePeriodSeconds":0}}],"#,
                r#""serviceAccountName":"fetch-sa","securityContext":{},"priority":0,"hostUsers":false}}"#,
            )
        );
    }

    #[test]
    fn amounts_ports_and_times_are_written_as_go_writes_them() {
        let template = json!({
            "metadata": {"creationTimestamp": "2026-01-31T08:00:00.5+01:00"},
            "spec": {"containers": [{
                "name": "mcp",
                "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
                "resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}, "requests": {"cpu": null}},
                "livenessProbe": {"httpGet": {"port": 80}},
                "readinessProbe": {"tcpSocket": {"port": "http"}},
            }]},
        });
        similar_asserts::assert_eq!(
            patch(template, &[]).unwrap(),
            concat!(
                r#"{"metadata":{"creationTimestamp":"2026-01-31T07:00:00Z"},"spec":{"containers":[{"name":"mcp","#,
                r#""env":[{"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}}],"#,
                r#""resources":{"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"0"}},"#,
                r#""livenessProbe":{"httpGet":{"port":80}},"readinessProbe":{"tcpSocket":{"port":"http"}}}],"#,
                r#""serviceAccountName":"fetch-sa"}}"#,
            )
        );
    }

    #[test]
    fn characters_that_are_special_in_html_are_escaped() {
        let template = json!({"metadata": {"annotations": {"<a>": "x & \"y\""}}});
        similar_asserts::assert_eq!(
            patch(template, &[]).unwrap(),
            concat!(
                r#"{"metadata":{"annotations":{"\u003ca\u003e":"x \u0026 \"y\""}},"#,
                r#""spec":{"containers":null,"serviceAccountName":"fetch-sa"}}"#,
            )
        );
    }

    #[test]
    fn a_malformed_template_is_rejected_with_the_field() {
        let container = |fields: Value| json!({"spec": {"containers": [{"name": "log"}, fields]}});
        for (template, message) in [
            (
                container(json!({"name": 5})),
                "podTemplateSpec.spec.containers[1].name: invalid type: integer `5`, expected a string",
            ),
            (
                container(json!({"resources": {"limits": {"cpu": "lots"}}})),
                "podTemplateSpec.spec.containers[1].resources.limits.cpu: \"lots\" is not a quantity, such as 500m, \
                 1, 128Mi or 2Gi",
            ),
        ] {
            assert_eq!(patch(template, &[]).unwrap_err().to_string(), message);
        }
    }
}

/// The patches that ToolHive's operator wrote: `SKEP_COMPAT` names the folder.
#[cfg(test)]
mod compat {
    use std::{
        env, fs,
        path::{Path, PathBuf},
    };

    use k8s_openapi::api::apps::v1::Deployment;
    use skep_api::kinds::MCPServer;
    use skep_config::objects::POD_PATCH_FLAG;

    use super::*;

    #[test]
    #[ignore = "reads the folder that SKEP_COMPAT names"]
    fn every_patch_equals_the_one_of_toolhive_byte_for_byte() {
        let compat = env::var_os("SKEP_COMPAT").expect("SKEP_COMPAT names the folder of ToolHive's files");
        let mut folders = Vec::new();
        collect(&PathBuf::from(compat).join("golden"), &mut folders);
        folders.sort();
        let mut count = 0;
        for folder in folders {
            let deployments: Vec<Deployment> = of_kind(&folder.join("objects.yaml"), "Deployment");
            for server in of_kind::<MCPServer>(&folder.join("input.yaml"), "MCPServer") {
                let name = server.metadata.name.unwrap();
                let theirs = deployments.iter().find_map(|deployment| pod_patch_of(deployment, &name));
                // There is none where its operator rejected the server.
                let Some(theirs) = theirs else { continue };
                let account = server.spec.service_account.unwrap_or_else(|| format!("{name}-sa"));
                let ours = pod_patch(server.spec.pod_template_spec.as_ref(), &account, &server.spec.secrets);
                similar_asserts::assert_eq!(ours.unwrap(), theirs, "{}: {name}", folder.display());
                count += 1;
            }
        }
        assert!(count > 30, "only {count} patches");
    }

    fn collect(folder: &Path, folders: &mut Vec<PathBuf>) {
        if folder.join("input.yaml").exists() {
            folders.push(folder.into());
        }
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).for_each(|path| collect(&path, folders));
    }

    /// The objects of a kind in a file. Others are not read: what they hold may not even be of any type.
    fn of_kind<T: serde::de::DeserializeOwned>(file: &Path, kind: &str) -> Vec<T> {
        let text = fs::read_to_string(file).unwrap();
        let documents = text.split("\n---\n");
        let documents = documents.filter(|text| text.lines().any(|line| line == format!("kind: {kind}")));
        documents.map(|text| serde_saphyr::from_str(text).unwrap()).collect()
    }

    /// The patch among the arguments of the Deployment, if it has this name.
    fn pod_patch_of(deployment: &Deployment, name: &str) -> Option<String> {
        let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
        let args = pod.containers.iter().flat_map(|container| container.args.iter().flatten());
        let mut patches = args.filter_map(|arg| arg.strip_prefix(POD_PATCH_FLAG)?.strip_prefix('='));
        patches.next().filter(|_| deployment.metadata.name.as_deref() == Some(name)).map(Into::into)
    }
}
