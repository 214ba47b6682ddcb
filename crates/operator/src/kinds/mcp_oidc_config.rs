//! MCPOIDCConfig: which issuer's tokens are accepted.

use skep_api::{
    conditions::Valid,
    kinds::{MCPOIDCConfig, MCPOIDCConfigSpec},
};
use skep_config::{FieldError, annotations::OIDC_CONFIG_FINALIZER};
use skep_converge::Finalizer;

use crate::{config_controller::Config, config_refs};

impl Config for MCPOIDCConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer(OIDC_CONFIG_FINALIZER);
    const VALID: Valid = Valid::ConfigValid;

    fn check(spec: &MCPOIDCConfigSpec) -> Vec<FieldError> {
        config_refs::oidc::check(spec)
    }

    fn invalid() -> Valid {
        Valid::ConfigInvalid
    }
}
