//! Permissions of a server. They have no effect in a cluster, where pods and network policies define them.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// The files and networks that a server may access.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct PermissionProfile {
    /// The name of the profile.
    pub name: String,
    /// The read-only mounts, as `host:container`.
    pub read: Vec<String>,
    /// The writable mounts, as `host:container`.
    pub write: Vec<String>,
    /// The network permissions.
    pub network: Option<NetworkPermissions>,
    /// Whether the container is privileged.
    pub privileged: bool,
}

impl PermissionProfile {
    /// The profile of a server with full network access.
    pub fn network() -> Self {
        Self::named("network", OutboundPermissions { insecure_allow_all: true, ..Default::default() })
    }

    /// The profile of a server without network access.
    pub fn none() -> Self {
        Self::named("none", OutboundPermissions::default())
    }

    fn named(name: &str, outbound: OutboundPermissions) -> Self {
        let inbound = Some(InboundPermissions::default());
        let network = NetworkPermissions { outbound: Some(outbound), inbound, ..Default::default() };
        Self { name: name.into(), network: Some(network), ..Self::default() }
    }
}

/// The network permissions of a server.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct NetworkPermissions {
    /// The network of the container, as container engines name it.
    pub mode: String,
    /// Outbound connections.
    pub outbound: Option<OutboundPermissions>,
    /// Inbound connections.
    pub inbound: Option<InboundPermissions>,
}

/// The outbound connections of a server.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct OutboundPermissions {
    /// Whether all are allowed.
    pub insecure_allow_all: bool,
    /// The hosts that it may connect to.
    pub allow_host: Vec<String>,
    /// The ports that it may connect to.
    pub allow_port: Vec<u16>,
}

/// The inbound connections of a server.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct InboundPermissions {
    /// The hosts that may connect to it.
    pub allow_host: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_built_in_profiles_define_what_may_be_reached() {
        assert_eq!(
            serde_json::to_value(PermissionProfile::network()).unwrap(),
            json!({"name": "network", "network": {"outbound": {"insecure_allow_all": true}, "inbound": {}}}),
        );
        assert_eq!(
            serde_json::to_value(PermissionProfile::none()).unwrap(),
            json!({"name": "none", "network": {"outbound": {}, "inbound": {}}}),
        );
    }
}
