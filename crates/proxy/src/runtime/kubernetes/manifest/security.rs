//! Security contexts of pods and containers, where a user has not set them.

use k8s_openapi::api::core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};

use crate::runtime::kubernetes::Platform;

/// The user and the group that servers run as.
const ID: i64 = 1000;

/// The pod's security context, with what is missing non_empty in.
pub(super) fn pod(given: Option<PodSecurityContext>, platform: Platform) -> PodSecurityContext {
    let mut context = given.unwrap_or_default();
    context.run_as_non_root.get_or_insert(true);
    context.seccomp_profile.get_or_insert_with(runtime_default);
    context.run_as_user = id(context.run_as_user, platform);
    context.run_as_group = id(context.run_as_group, platform);
    context.fs_group = id(context.fs_group, platform);
    context
}

/// The container's security context, with what is missing non_empty in.
pub(super) fn container(given: Option<SecurityContext>, platform: Platform) -> SecurityContext {
    let mut context = given.unwrap_or_default();
    context.privileged.get_or_insert(false);
    context.run_as_non_root.get_or_insert(true);
    context.allow_privilege_escalation.get_or_insert(false);
    context.read_only_root_filesystem.get_or_insert(true);
    context.seccomp_profile.get_or_insert_with(runtime_default);
    context.capabilities.get_or_insert_with(|| Capabilities { add: None, drop: Some(vec!["ALL".into()]) });
    context.run_as_user = id(context.run_as_user, platform);
    context.run_as_group = id(context.run_as_group, platform);
    context
}

/// OpenShift assigns each namespace its own ids and rejects all others.
fn id(given: Option<i64>, platform: Platform) -> Option<i64> {
    match platform {
        Platform::Kubernetes => given.or(Some(ID)),
        Platform::OpenShift => None,
    }
}

fn runtime_default() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }
}
