//! The middleware of a RunConfig, with errors that name fields of the API.

use skep_config::{
    FieldError, RunConfig,
    run_config::{ChainError, Middleware},
};

/// The middleware that each request passes, derived from the rest of a RunConfig.
pub(crate) fn middleware(config: &RunConfig) -> Result<Vec<Middleware>, FieldError> {
    config.middleware().map_err(|error| match error {
        ChainError::NoToken(what) => FieldError::new(
            "embeddedAuthServer.disableUpstreamTokenInjection",
            format!("{what} needs a token: set it to false, or remove one of the two"),
        ),
        ChainError::NotRemote => FieldError::new(
            "externalAuthConfigRef",
            "type awsSts signs requests to a remote server: use it with an MCPRemoteProxy",
        ),
        ChainError::NoRedis => no_redis(),
        ChainError::Document(error) => {
            FieldError::new("authzConfig", format!("the authorization document is invalid: {error}"))
        }
    })
}

/// The mistake of rate limits without a Redis.
pub(crate) fn no_redis() -> FieldError {
    FieldError::new("rateLimiting", "calls are counted in Redis: set sessionStorage with provider redis")
}
