//! Whether the users of an authorization server have names.

use skep_api::{
    auth_server::{EmbeddedAuthServer, UpstreamType},
    conditions::IdentitySynthesized,
    strategy::provider,
};

use crate::reconcile::Condition;

/// Without a source for who a user is, the authorization server generates a name for each login.
pub(crate) fn identity_synthesized(server: &EmbeddedAuthServer) -> Condition {
    let unnamed = server.upstream_providers.iter().filter(|upstream| {
        let oauth2 = upstream.oauth2_config.as_ref();
        upstream.type_ == UpstreamType::Oauth2
            && oauth2.is_none_or(|oauth2| oauth2.user_info.is_none() && oauth2.identity_from_token.is_none())
    });
    let mut names: Vec<String> = unnamed.map(|upstream| provider(&upstream.name)).collect();
    names.sort_unstable();
    if names.is_empty() {
        let message = "every upstream provider identifies its users";
        return Condition::new(IdentitySynthesized::AllUpstreamsHaveUserInfo, message);
    }
    let message = format!(
        "users of {} get generated names: set oauth2Config.userInfo or identityFromToken",
        names.join(", ")
    );
    Condition::new(IdentitySynthesized::OAuth2UpstreamWithoutUserInfo, message)
}
