//! Image pull secrets.

use k8s_openapi::api::core::v1;
use skep_api::refs::LocalObjectReference;

/// The object's own, in its order, then the installation's that it does not name. `None` if there are none.
pub(crate) fn pull_secrets(
    own: &[LocalObjectReference],
    defaults: &[String],
) -> Option<Vec<v1::LocalObjectReference>> {
    let mut names: Vec<&str> = Vec::new();
    let own = own.iter().filter_map(|secret| secret.name.as_deref());
    for name in own.chain(defaults.iter().map(String::as_str)) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let secrets: Vec<_> =
        names.into_iter().map(|name| v1::LocalObjectReference { name: name.into() }).collect();
    (!secrets.is_empty()).then_some(secrets)
}
