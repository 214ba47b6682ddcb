//! MCPExternalAuthConfig: how a proxy authenticates to its upstream.

use skep_api::kinds::{MCPExternalAuthConfig, MCPExternalAuthConfigSpec};
use skep_config::{FieldError, annotations::EXTERNAL_AUTH_CONFIG_FINALIZER};
use skep_converge::Finalizer;

use crate::{config_controller::Config, config_refs, reconcile::Condition};

impl Config for MCPExternalAuthConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer(EXTERNAL_AUTH_CONFIG_FINALIZER);

    fn check(spec: &MCPExternalAuthConfigSpec) -> Vec<FieldError> {
        config_refs::external_auth::check(spec)
    }

    fn further_conditions(spec: &MCPExternalAuthConfigSpec) -> Vec<Condition> {
        let server = spec.embedded_auth_server.as_ref();
        server.map(config_refs::auth_server::identity_synthesized).into_iter().collect()
    }
}
