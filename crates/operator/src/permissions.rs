//! What the operator asks of the API server, and so must be allowed. The charts' roles are made from this, and every
//! test of the operator runs with this and nothing more.

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Resource;
use skep_api::{GROUP, kinds};
use skep_world::Watched;

use crate::{
    build::{Rule, policy},
    driver::Controller,
    kinds::{Visit, each},
};

const READ: &[&str] = &["get", "list", "watch"];
/// To make, change and remove children. Server-side apply is a patch, and a creation where there is nothing yet.
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// What the pods may do the operator must be allowed as well: nobody can grant more than they have.
const GRANT: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

const RULES: [Rule; 13] = [
    (GROUP, &["virtualmcpservers/status"], &["update"]),
    ("apps", &["deployments"], OWN),
    ("apps", &["statefulsets"], GRANT),
    ("", &["services", "configmaps"], GRANT),
    ("", &["serviceaccounts"], OWN),
    // One that is made is never changed, and goes with its owner.
    ("", &["secrets"], &["get", "list", "watch", "create"]),
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

/// What moving stored objects needs beside that, in the whole cluster. Their definitions change in one list alone.
const MIGRATION: [Rule; 2] = [
    ("apiextensions.k8s.io", &["customresourcedefinitions"], READ),
    ("apiextensions.k8s.io", &["customresourcedefinitions/status"], &["patch"]),
];

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

/// The rules for the whole cluster, for an operator that moves stored objects to another version.
pub fn migration_rules() -> Vec<PolicyRule> {
    macro_rules! plurals {
        ($($kind:ident),*) => { vec![$(kinds::$kind::plural(&()).into_owned()),*] };
    }
    let plurals = plurals![
        EmbeddingServer,
        MCPAuthzConfig,
        MCPExternalAuthConfig,
        MCPGroup,
        MCPOIDCConfig,
        MCPRegistry,
        MCPRemoteProxy,
        MCPServer,
        MCPServerEntry,
        MCPTelemetryConfig,
        MCPToolConfig,
        MCPWebhookConfig,
        VirtualMCPCompositeToolDefinition,
        VirtualMCPServer
    ];
    let objects = PolicyRule {
        api_groups: Some(vec![GROUP.into()]),
        resources: Some(plurals),
        verbs: ["list", "patch"].map(Into::into).into(),
        ..PolicyRule::default()
    };
    MIGRATION.iter().map(policy).chain([objects]).collect()
}

/// The rules for the operator's own namespace.
pub fn election_rules() -> Vec<PolicyRule> {
    ELECTION.iter().map(policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_every_kind_can_be_moved() {
        let crds = skep_api::crd::crds().unwrap();
        let all: Vec<String> = crds.iter().map(|crd| crd.spec.names.plural.clone()).collect();
        assert_eq!(migration_rules()[2].resources, Some(all));
    }
}
