//! What the operator asks of the API server, and so must be allowed. The charts' roles are made from this, and every
//! test of the operator runs with this and nothing more.

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::PolicyRule;
use skep_api::GROUP;
use skep_world::Watched;

use crate::{
    build::{Rule, policy},
    driver::Controller,
    kinds::{Visit, each},
};

const READ: &[&str] = &["get", "list", "watch"];
/// To make, change and remove children. Server-side apply is a patch, and a creation where there is nothing yet.
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// What proxies and registry servers may do the operator must be allowed as well: nobody can grant more than they have.
const GRANT: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

const RULES: [Rule; 13] = [
    (GROUP, &["virtualmcpservers"], READ),
    ("apps", &["deployments"], OWN),
    ("apps", &["statefulsets"], GRANT),
    ("", &["services", "configmaps"], GRANT),
    ("", &["serviceaccounts"], OWN),
    ("", &["secrets"], READ),
    ("", &["pods"], &["get", "list", "watch", "delete"]),
    ("", &["pods/log"], &["get"]),
    ("", &["pods/attach"], &["create", "get"]),
    ("rbac.authorization.k8s.io", &["roles", "rolebindings"], OWN),
    ("events.k8s.io", &["events"], &["create", "patch"]),
    // What registry servers may do beside that.
    ("coordination.k8s.io", &["leases"], GRANT),
    ("gateway.networking.k8s.io", &["httproutes", "gateways"], READ),
];

/// What replicas need beside that to agree on a leader, in the operator's own namespace.
const ELECTION: [Rule; 1] =
    [("coordination.k8s.io", &["leases"], &["get", "list", "watch", "create", "update", "patch"])];

/// The kinds that are worked on, as URLs write them.
struct Plurals(Vec<&'static str>);

impl Visit for Plurals {
    fn visit<C: Controller>(&mut self, _: C) {
        self.0.push(C::Resource::KIND.plural);
    }
}

/// The rules for the namespaces that the operator works in.
pub fn rules() -> Vec<PolicyRule> {
    let mut plurals = Plurals(Vec::new());
    each(&Arc::default(), &mut plurals);
    let worked_on = |suffix: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![GROUP.into()]),
        resources: Some(plurals.0.iter().map(|plural| format!("{plural}{suffix}")).collect()),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    };
    let custom = [
        worked_on("", &["get", "list", "watch", "patch"]),
        worked_on("/status", &["patch"]),
        // To be named as the owner of children that hold back their deletion.
        worked_on("/finalizers", &["update"]),
    ];
    custom.into_iter().chain(RULES.iter().map(policy)).collect()
}

/// The rules for the operator's own namespace.
pub fn election_rules() -> Vec<PolicyRule> {
    ELECTION.iter().map(policy).collect()
}
