//! The two files of a virtual server with an authorization server must not contradict each other.

use skep_api::vmcp::{Config, IncomingAuth};
use skep_config::run_config::bare_issuer;
use skep_gateway::AuthorizationServer;

use crate::ConfigError;

/// Checks that callers are authenticated by tokens that the server issues.
pub(super) fn check(config: &Config, server: &dyn AuthorizationServer) -> Result<(), ConfigError> {
    let incoming = config.incoming_auth.as_ref().filter(|incoming| incoming.type_ == IncomingAuth::OIDC);
    let Some(oidc) = incoming.and_then(|incoming| incoming.oidc.as_ref()) else {
        return Err(ConfigError::new(
            "incomingAuth.type must be oidc where there is an authorization server, or its tokens are not required",
        ));
    };
    if bare_issuer(&oidc.issuer) != bare_issuer(server.issuer()) {
        return Err(ConfigError::new(format!(
            "incomingAuth.oidc.issuer must be the issuer of the authorization server, {}",
            server.issuer()
        )));
    }
    if !server.audiences().contains(&oidc.audience) {
        return Err(ConfigError::new(
            "incomingAuth.oidc.audience must be one of allowed_audiences of the authorization server",
        ));
    }
    Ok(())
}
