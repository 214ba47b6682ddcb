//! Requests of web pages: only those of allowed origins pass, or any page that a user opens could call the server.

use http::{Uri, header};
use skep_config::run_config;
use skep_mcp::Rejection;

use crate::{ConfigError, http::ErrorResponse, message::Exchange};

/// The origins that may call.
pub(crate) struct Origin(Vec<String>);

impl Origin {
    pub(super) fn new(parameters: &run_config::Origin) -> Result<Self, ConfigError> {
        let allowed = parameters.allowed_origins.iter().map(|origin| {
            let wrong = || {
                ConfigError::new(format!(
                    "allowed_origins: {origin:?} is not an origin: write it as https://host"
                ))
            };
            normal(origin).ok_or_else(wrong)
        });
        allowed.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn request(&self, exchange: &Exchange) -> Result<(), ErrorResponse> {
        let mut origins = exchange.headers.get_all(header::ORIGIN).iter();
        let (first, second) = (origins.next(), origins.next());
        let allowed = match (first, second) {
            // Programs have none.
            (None, _) => true,
            (Some(origin), None) => {
                let origin = origin.to_str().ok().and_then(normal);
                origin.is_some_and(|origin| self.0.contains(&origin))
            }
            (Some(_), Some(_)) => false,
        };
        // No id: the page must not learn anything.
        if allowed { Ok(()) } else { Err(Box::new(crate::http::response::error(&Rejection::Origin, None))) }
    }
}

/// Scheme and host in lower case, with the port as it is written.
fn normal(origin: &str) -> Option<String> {
    let uri: Uri = origin.parse().ok()?;
    let authority = uri.authority()?;
    let bare = uri.path() == "/"
        && uri.query().is_none()
        && !authority.as_str().contains('@')
        && !origin.ends_with('/');
    let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
    bare.then(|| {
        format!("{}://{}{port}", uri.scheme_str().unwrap_or_default(), authority.host()).to_ascii_lowercase()
    })
}
