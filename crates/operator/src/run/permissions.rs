//! The permissions that the operator needs. The charts' roles are generated from this, and every test of the operator runs
//! with these and no others.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Resource;
use skep_api::{GROUP, for_each_kind, kinds};

use crate::build::{Rule, policy};

const READ: &[&str] = &["get", "list", "watch"];
/// To create, change and delete children. Server-side apply is a patch, and a create if the object does not exist.
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// What the pods are granted, the operator must be allowed as well: RBAC lets no one grant more than they have.
const GRANT: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

const RULES: [Rule; 14] = [
    (GROUP, &["virtualmcpservers/status"], &["update"]),
    ("apps", &["deployments"], OWN),
    ("apps", &["statefulsets"], GRANT),
    ("", &["services", "configmaps"], GRANT),
    ("", &["serviceaccounts"], OWN),
    // They are created once, never changed, and deleted with their owner.
    ("", &["secrets"], &["get", "list", "watch", "create"]),
    ("", &["pods"], &["get", "list", "watch", "delete"]),
    ("", &["pods/log"], &["get"]),
    ("", &["pods/attach"], &["create", "get"]),
    ("rbac.authorization.k8s.io", &["roles", "rolebindings"], OWN),
    ("events.k8s.io", &["events"], &["create", "patch"]),
    // What pods with an authorization server are granted in addition.
    ("authorization.k8s.io", &["localsubjectaccessreviews"], &["create"]),
    // What registry servers are granted in addition.
    ("coordination.k8s.io", &["leases"], GRANT),
    ("gateway.networking.k8s.io", &["httproutes", "gateways"], READ),
];

/// For leader election, in the operator's own namespace.
const ELECTION: [Rule; 1] =
    [("coordination.k8s.io", &["leases"], &["get", "list", "watch", "create", "update", "patch"])];

/// To migrate stored objects to the storage version, in the whole cluster. Of a definition, only one list in its status
/// changes.
const MIGRATION: [Rule; 2] = [
    ("apiextensions.k8s.io", &["customresourcedefinitions"], READ),
    ("apiextensions.k8s.io", &["customresourcedefinitions/status"], &["patch"]),
];

/// The plurals of all kinds.
fn plurals() -> Vec<String> {
    macro_rules! plurals {
        ($($kind:ident),+) => { vec![$(kinds::$kind::plural(&()).into_owned()),+] };
    }
    for_each_kind!(plurals)
}

/// The rules for the namespaces that the operator works in.
pub fn rules() -> Vec<PolicyRule> {
    let on_kinds = |suffix: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![GROUP.into()]),
        resources: Some(plurals().iter().map(|plural| format!("{plural}{suffix}")).collect()),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    };
    let custom = [
        on_kinds("", &["get", "list", "watch", "patch"]),
        on_kinds("/status", &["patch"]),
        // To be the owner of children that block its deletion.
        on_kinds("/finalizers", &["update"]),
    ];
    custom.into_iter().chain(RULES.iter().map(policy)).collect()
}

/// The rules for the whole cluster, for an operator that migrates stored objects.
pub fn migration_rules() -> Vec<PolicyRule> {
    let objects = PolicyRule {
        api_groups: Some(vec![GROUP.into()]),
        resources: Some(plurals()),
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
    fn objects_of_every_kind_can_be_migrated() {
        let crds = skep_api::crd::crds().unwrap();
        let all: Vec<String> = crds.iter().map(|crd| crd.spec.names.plural.clone()).collect();
        assert_eq!(migration_rules()[2].resources, Some(all));
    }
}
