//! What the operator asks of the API server, and so must be allowed. The charts' roles are made from this, and every
//! test of the operator runs with this and nothing more.

use k8s_openapi::api::rbac::v1::PolicyRule;
use skep_api::GROUP;

use crate::build::{Rule, policy};

const READ: &[&str] = &["get", "list", "watch"];
/// To make, change and remove children. Server-side apply is a patch, and a creation where there is nothing yet.
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// What proxies may do the operator must be allowed as well: nobody can grant more than they have.
const GRANT: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

const RULES: [Rule; 14] = [
    (GROUP, &["mcpservers"], &["get", "list", "watch", "patch"]),
    (GROUP, &["mcpservers/status"], &["patch"]),
    // To be named as the owner of children that hold back their deletion.
    (GROUP, &["mcpservers/finalizers"], &["update"]),
    (
        GROUP,
        &[
            "mcpauthzconfigs",
            "mcpexternalauthconfigs",
            "mcpgroups",
            "mcpoidcconfigs",
            "mcptelemetryconfigs",
            "mcptoolconfigs",
            "mcpwebhookconfigs",
        ],
        READ,
    ),
    ("apps", &["deployments"], OWN),
    ("apps", &["statefulsets"], GRANT),
    ("", &["services"], GRANT),
    ("", &["configmaps", "serviceaccounts"], OWN),
    ("", &["secrets"], READ),
    ("", &["pods"], &["get", "list", "watch", "delete"]),
    ("", &["pods/log"], &["get"]),
    ("", &["pods/attach"], &["create", "get"]),
    ("rbac.authorization.k8s.io", &["roles", "rolebindings"], OWN),
    ("events.k8s.io", &["events"], &["create", "patch"]),
];

/// What replicas need beside that to agree on a leader, in the operator's own namespace.
const ELECTION: [Rule; 1] =
    [("coordination.k8s.io", &["leases"], &["get", "list", "watch", "create", "update", "patch"])];

/// The rules for the namespaces that the operator works in.
pub fn rules() -> Vec<PolicyRule> {
    RULES.iter().map(policy).collect()
}

/// The rules for the operator's own namespace.
pub fn election_rules() -> Vec<PolicyRule> {
    ELECTION.iter().map(policy).collect()
}
