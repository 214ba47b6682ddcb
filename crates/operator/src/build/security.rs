//! Security contexts: as little as a container needs.

use k8s_openapi::api::core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};

use crate::settings::Platform;

/// The user and group that proxies run as, where the platform does not choose them.
const USER: i64 = 1000;

fn user(platform: Platform) -> Option<i64> {
    match platform {
        Platform::Kubernetes => Some(USER),
        Platform::OpenShift => None,
    }
}

fn runtime_default() -> Option<SeccompProfile> {
    Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None })
}

pub(crate) fn pod_security(platform: Platform) -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: user(platform),
        run_as_group: user(platform),
        fs_group: user(platform),
        seccomp_profile: runtime_default(),
        ..PodSecurityContext::default()
    }
}

pub(crate) fn container_security(platform: Platform) -> SecurityContext {
    SecurityContext {
        privileged: Some(false),
        run_as_non_root: Some(true),
        run_as_user: user(platform),
        run_as_group: user(platform),
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        seccomp_profile: runtime_default(),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
        ..SecurityContext::default()
    }
}

/// The first port that every user may listen on.
const FIRST_FREE_PORT: i32 = 1024;

/// For a container that listens on the port, and runs as the user of its image: everything that the restricted Pod
/// Security Standard requires, except a different user.
pub(crate) fn least_rights(port: i32) -> SecurityContext {
    let add = (port < FIRST_FREE_PORT).then(|| vec!["NET_BIND_SERVICE".into()]);
    SecurityContext {
        allow_privilege_escalation: Some(false),
        seccomp_profile: runtime_default(),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add }),
        ..SecurityContext::default()
    }
}
