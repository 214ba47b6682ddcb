//! What each request goes through, and what is wrong with it in the words of the API.

use skep_config::{
    RunConfig,
    run_config::{ChainError, Middleware},
};

/// What each request goes through, from what the rest of a RunConfig says.
pub(crate) fn middleware(config: &RunConfig) -> Result<Vec<Middleware>, String> {
    config.middleware().map_err(|error| match error {
        ChainError::NoToken(what) => format!(
            "embeddedAuthServer.disableUpstreamTokenInjection: {what} needs a token: set it to false, or leave one out"
        ),
        ChainError::NotRemote => {
            "type awsSts signs requests to a remote server: use it with an MCPRemoteProxy".into()
        }
        ChainError::NoRedis => {
            "rateLimiting: calls are counted in Redis: set sessionStorage with provider redis".into()
        }
        ChainError::Document(error) => format!("the authorization document: {error}"),
    })
}
