//! The objects of a cluster, as they are watched, and the pods of its servers.

mod administration;
mod calls;
mod children;
mod events;
mod service;
mod token;
mod watch;

use std::sync::Arc;

use futures::join;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;
use skep_api::GROUP;
use skep_config::administration::{SUBRESOURCE, resource};

use crate::{Objects, objects::resources};
pub(crate) use administration::{Administrator, Failure, Selection};
pub use calls::follow_calls;
pub(crate) use service::Services;
pub use token::Account;

/// Keeps the objects up to date, in these namespaces or in all, for ever.
pub async fn follow(client: Client, namespaces: Vec<String>, objects: Arc<Objects>) {
    let scopes = scopes(namespaces);
    join!(
        watch::follow(&client, &scopes, &objects),
        events::follow(&client, &scopes, &objects),
        children::follow(&client, &scopes, &objects),
    );
}

/// These namespaces, or all.
fn scopes(namespaces: Vec<String>) -> Vec<Option<String>> {
    if namespaces.is_empty() { vec![None] } else { namespaces.into_iter().map(Some).collect() }
}

/// The rules that let the console administer the sessions of users, where its users may.
pub fn session_rules() -> Vec<PolicyRule> {
    let plurals = resources().iter().filter_map(|kind| resource(&kind.kind));
    let resources = plurals.map(|plural| format!("{plural}/{SUBRESOURCE}")).collect();
    vec![PolicyRule {
        api_groups: Some(vec![GROUP.into()]),
        resources: Some(resources),
        verbs: vec!["get".into(), "delete".into()],
        ..PolicyRule::default()
    }]
}

/// What the console may do in the namespaces that it shows: read objects of the API, events, what was created
/// for servers with its pods, and where proxies run.
pub fn rules() -> Vec<PolicyRule> {
    let rule = |group: &str, resources: Vec<String>| PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(resources),
        verbs: vec!["get".into(), "list".into(), "watch".into()],
        ..PolicyRule::default()
    };
    let plurals = resources().iter().map(|resource| resource.plural.clone()).collect();
    let slices = rule("discovery.k8s.io", vec!["endpointslices".into()]);
    let list = |resources: &[&str]| resources.iter().map(ToString::to_string).collect();
    let core = rule("", list(&["events", "pods", "services"]));
    let created = rule("apps", list(&["deployments", "replicasets", "statefulsets"]));
    vec![rule(GROUP, plurals), core, created, slices]
}
