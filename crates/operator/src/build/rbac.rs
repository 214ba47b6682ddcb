//! ServiceAccounts, and what they may do.

use k8s_openapi::api::{
    core::v1::{LocalObjectReference, ServiceAccount},
    rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
};

use skep_api::{GROUP, kinds::ApiKind};

use super::Identity;
use crate::resources::PlatformSecrets;

/// A group, resources in it, and verbs on them.
pub(crate) type Rule = (&'static str, &'static [&'static str], &'static [&'static str]);

/// What a proxy may do in its namespace.
pub(crate) struct Rules(&'static [Rule]);

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// A virtual MCP server reports the state of its backends.
const OWN_OBJECT: Rule = (GROUP, &["virtualmcpservers"], &["get"]);
const OWN_STATUS: Rule = (GROUP, &["virtualmcpservers/status"], &["update", "patch"]);

impl Rules {
    /// The proxy of an MCPServer starts the server: a StatefulSet with its Services, whose pods it attaches to.
    pub(crate) const RUNNER: Self = Self(&[
        ("apps", &["statefulsets"], WRITE),
        ("", &["services"], WRITE),
        ("", &["pods"], READ),
        ("", &["pods/log"], &["get"]),
        ("", &["pods/attach"], &["create", "get"]),
        ("", &["configmaps"], READ),
    ]);

    /// A registry server lists the servers of the cluster, and stores its data in ConfigMaps.
    pub(crate) const REGISTRY: Self = Self(&[
        (GROUP, &["mcpservers", "mcpremoteproxies", "virtualmcpservers"], READ),
        ("", &["services"], READ),
        ("gateway.networking.k8s.io", &["httproutes", "gateways"], READ),
        ("", &["configmaps"], WRITE),
        ("coordination.k8s.io", &["leases"], WRITE),
        ("events.k8s.io", &["events"], &["create", "patch"]),
    ]);

    /// The proxy of an MCPRemoteProxy starts nothing.
    pub(crate) const REMOTE: Self = Self(&[("", &["configmaps"], READ), ("", &["secrets"], READ)]);

    /// A virtual MCP server that follows its backends reads their objects, and what these refer to.
    pub(crate) const VMCP_DISCOVERED: Self = Self(&[
        ("", &["configmaps", "secrets"], READ),
        (
            GROUP,
            &[
                "mcpgroups",
                "mcpservers",
                "mcpremoteproxies",
                "mcpserverentries",
                "mcpexternalauthconfigs",
                "mcptoolconfigs",
            ],
            READ,
        ),
        OWN_OBJECT,
        OWN_STATUS,
    ]);

    /// A server with inline backends reads nothing but its own object.
    pub(crate) const VMCP_INLINE: Self = Self(&[OWN_OBJECT, OWN_STATUS]);
}

/// A ServiceAccount for a child's pods.
pub(crate) fn service_account(
    identity: &Identity,
    name: &str,
    pull_secrets: Option<Vec<LocalObjectReference>>,
    platform: &PlatformSecrets,
) -> ServiceAccount {
    let added = platform.of(name).iter().map(|name| LocalObjectReference { name: name.clone() });
    let pull_secrets = pull_secrets.map(|own| own.into_iter().chain(added).collect());
    ServiceAccount {
        metadata: identity.metadata(name),
        image_pull_secrets: pull_secrets,
        ..ServiceAccount::default()
    }
}

/// What a proxy needs to report what its server offers: it reads its own object, and writes its status.
pub(crate) fn own_status<K: ApiKind>(name: &str) -> [PolicyRule; 2] {
    let rule = |resource: String, verb: &str| PolicyRule {
        api_groups: Some(vec![GROUP.into()]),
        resources: Some(vec![resource]),
        resource_names: Some(vec![name.into()]),
        verbs: vec![verb.into()],
        ..PolicyRule::default()
    };
    let plural = K::plural(&());
    [rule(plural.to_string(), "get"), rule(format!("{plural}/status"), "patch")]
}

/// What a pod with an authorization server needs to have the API server decide about administrators of its sessions. It shows
/// nothing of the namespace but who may do what.
pub(crate) fn reviews(has_auth_server: bool) -> Option<PolicyRule> {
    const REVIEWS: Rule = ("authorization.k8s.io", &["localsubjectaccessreviews"], &["create"]);
    has_auth_server.then(|| policy(&REVIEWS))
}

/// A Role with the rules, and its binding to the ServiceAccount of the same name.
pub(crate) fn rbac(
    identity: &Identity,
    name: &str,
    rules: &Rules,
    more: impl IntoIterator<Item = PolicyRule>,
) -> (Role, RoleBinding) {
    let rules = rules.0.iter().map(policy).chain(more);
    let role = Role { metadata: identity.metadata(name), rules: Some(rules.collect()) };
    let binding = RoleBinding {
        metadata: identity.metadata(name),
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".into(),
            kind: "Role".into(),
            name: name.into(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name: name.into(),
            namespace: Some(identity.namespace.clone()),
            api_group: None,
        }]),
    };
    (role, binding)
}

/// The rule as Kubernetes writes it.
pub(crate) fn policy((group, resources, verbs): &Rule) -> PolicyRule {
    let list = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(list(&[group])),
        resources: Some(list(resources)),
        verbs: list(verbs),
        ..PolicyRule::default()
    }
}
