//! The objects of a cluster, as they are watched.

mod events;
mod watch;

use std::sync::Arc;

use futures::future::join;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;
use skep_api::GROUP;

use crate::{Objects, objects::resources};

/// Keeps the objects up to date, in these namespaces or in all, for ever.
pub async fn follow(client: Client, namespaces: Vec<String>, objects: Arc<Objects>) {
    let scopes: Vec<Option<String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.into_iter().map(Some).collect() };
    join(watch::follow(&client, &scopes, &objects), events::follow(&client, &scopes, &objects)).await;
}

/// What [`follow`] may do: read objects of the API and events.
pub fn rules() -> Vec<PolicyRule> {
    let rule = |group: &str, resources: Vec<String>| PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(resources),
        verbs: vec!["get".into(), "list".into(), "watch".into()],
        ..PolicyRule::default()
    };
    let plurals = resources().iter().map(|resource| resource.plural.clone()).collect();
    vec![rule(GROUP, plurals), rule("", vec!["events".into()])]
}
