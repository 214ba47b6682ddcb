//! The cluster, and the namespace in it.

use std::{collections::BTreeMap, fs, path::Path};

use http::{HeaderValue, header::USER_AGENT};
use kube::{Config, config::KubeConfigOptions};
use skep_config::{env, paths};

use super::RuntimeError;

/// The variable that Kubernetes sets in every pod.
const IN_A_CLUSTER: &str = "KUBERNETES_SERVICE_HOST";

/// How audit logs and the metrics of the API server name the proxy.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("skep-proxy/", env!("CARGO_PKG_VERSION")));

/// The configuration for the cluster that the process runs in, or else that of the kubeconfig.
pub(super) async fn config(env: &BTreeMap<String, String>) -> Result<Config, RuntimeError> {
    let mut config = if env.contains_key(IN_A_CLUSTER) {
        Config::incluster().map_err(|error| RuntimeError::Config(error.to_string()))?
    } else {
        let config = Config::from_kubeconfig(&KubeConfigOptions::default()).await;
        config.map_err(|error| RuntimeError::Config(error.to_string()))?
    };
    config.headers.push((USER_AGENT, AGENT));
    Ok(config)
}

/// The namespace of the pod's own service account, or else that which a variable names, or else that of the kubeconfig's
/// context, which is `default` if it names none.
pub(super) fn namespace(env: &BTreeMap<String, String>, config: &Config) -> String {
    namespace_of(Path::new(paths::CLUSTER_NAMESPACE), env, &config.default_namespace)
}

fn namespace_of(file: &Path, env: &BTreeMap<String, String>, context: &str) -> String {
    let mounted = fs::read_to_string(file).unwrap_or_default();
    let mounted = mounted.trim_end_matches(['\r', '\n']);
    let variable = env.get(env::POD_NAMESPACE).map(String::as_str).unwrap_or_default();
    let first = [mounted, variable, context].into_iter().find(|name| !name.is_empty());
    first.unwrap_or("default").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_account_comes_first_and_default_last() {
        let folder = std::env::temp_dir().join(format!("skep-namespace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("namespace");
        let of = |mounted: Option<&str>, variable: Option<&str>, context: &str| {
            match mounted {
                Some(text) => fs::write(&file, text).unwrap(),
                None => drop(fs::remove_file(&file)),
            }
            let env =
                variable.map(|name| (env::POD_NAMESPACE.to_owned(), name.to_owned())).into_iter().collect();
            namespace_of(&file, &env, context)
        };
        assert_eq!(of(Some("mounted\r\n"), Some("variable"), "context"), "mounted");
        assert_eq!(of(None, Some("variable"), "context"), "variable");
        assert_eq!(of(Some("\n"), Some("variable"), "context"), "variable");
        assert_eq!(of(None, Some(""), "context"), "context");
        assert_eq!(of(None, None, ""), "default");
        fs::remove_dir_all(&folder).unwrap();
    }
}
