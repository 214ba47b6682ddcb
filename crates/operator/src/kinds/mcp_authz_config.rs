//! MCPAuthzConfig: policies that several workloads share.

use skep_api::{
    conditions::Valid,
    kinds::{MCPAuthzConfig, MCPAuthzConfigSpec},
};
use skep_config::{FieldError, annotations::AUTHZ_CONFIG_FINALIZER};
use skep_converge::Finalizer;

use crate::{config_controller::Config, config_refs, reconcile::Condition};

impl Config for MCPAuthzConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer(AUTHZ_CONFIG_FINALIZER);
    const VALID: Valid = Valid::ConfigValid;

    fn check(spec: &MCPAuthzConfigSpec) -> Vec<FieldError> {
        config_refs::authz::check(spec)
    }

    fn invalid() -> Valid {
        Valid::ConfigInvalid
    }

    fn further_conditions(spec: &MCPAuthzConfigSpec) -> Vec<Condition> {
        let document = config_refs::authz::document(spec).ok();
        // The document has the settings of the type under a key for that type; the object has them in `config`.
        document.and_then(|document| config_refs::authz::warning("config.", &document)).into_iter().collect()
    }
}
