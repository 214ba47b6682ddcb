//! What a server may read, write and reach. In a cluster it has no effect: pods and policies say it there.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// What a server may read, write and reach.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct PermissionProfile {
    /// The name of the profile.
    pub name: String,
    /// What it may read, as `host:container`.
    pub read: Vec<String>,
    /// What it may read and write, as `host:container`.
    pub write: Vec<String>,
    /// What it may reach, and who may reach it.
    pub network: Option<NetworkPermissions>,
    /// Whether it has all the powers of its host.
    pub privileged: bool,
}

impl PermissionProfile {
    /// The profile of a server that may reach everything.
    pub fn network() -> Self {
        Self::named("network", OutboundPermissions { insecure_allow_all: true, ..Default::default() })
    }

    /// The profile of a server that may reach nothing.
    pub fn none() -> Self {
        Self::named("none", OutboundPermissions::default())
    }

    fn named(name: &str, outbound: OutboundPermissions) -> Self {
        let inbound = Some(InboundPermissions::default());
        let network = NetworkPermissions { outbound: Some(outbound), inbound, ..Default::default() };
        Self { name: name.into(), network: Some(network), ..Self::default() }
    }
}

/// What a server may reach, and who may reach it.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct NetworkPermissions {
    /// The network of the container, as container engines name it.
    pub mode: String,
    /// What it may reach.
    pub outbound: Option<OutboundPermissions>,
    /// Who may reach it.
    pub inbound: Option<InboundPermissions>,
}

/// What a server may reach.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct OutboundPermissions {
    /// Whether it may reach everything.
    pub insecure_allow_all: bool,
    /// The hosts that it may reach.
    pub allow_host: Vec<String>,
    /// The ports that it may reach.
    pub allow_port: Vec<u16>,
}

/// Who may reach a server.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct InboundPermissions {
    /// The hosts that may reach it.
    pub allow_host: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_built_in_profiles_say_what_may_be_reached() {
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
