//! The layers that every request goes through, outermost first.

use http::{HeaderValue, Response, header};
use skep_config::{
    RunConfig,
    run_config::{self, Middleware},
};

use crate::{
    ConfigError,
    answer::{self, Refused},
    body::Body,
    budget::Budget,
    exchange::Exchange,
    filter,
    layers::{Layer, Telemetry, no_auth_server},
    limits,
};

/// The layers of a proxy.
pub(crate) struct Chain {
    layers: Vec<Layer>,
    /// The largest body of a request.
    pub(crate) body_limit: usize,
    looks_into_answers: bool,
}

impl Chain {
    /// The chain that the RunConfig lists or describes. A type that is not known ends the proxy: it may be one that protects.
    pub(crate) fn new(config: &RunConfig) -> Result<Self, ConfigError> {
        if config.embedded_auth_server_config.is_some() {
            return Err(no_auth_server("embedded_auth_server_config"));
        }
        let mut layers = Vec::new();
        let mut body_limit = None;
        let listed = config.middleware().map_err(|error| ConfigError::new(error.to_string()))?;
        let has_origins = listed.iter().any(|middleware| matches!(middleware, Middleware::Origin(_)));
        let origins = origins(config).filter(|_| !has_origins);
        for middleware in origins.iter().chain(&listed) {
            if let Middleware::BodyLimit(limit) = middleware {
                // Whoever lists two wants both to hold.
                let limit = usize::try_from(limit.max_bytes()).unwrap_or(usize::MAX);
                body_limit = Some(body_limit.map_or(limit, |other: usize| other.min(limit)));
                continue;
            }
            layers.extend(Layer::new(middleware, config)?);
        }
        Ok(Self {
            looks_into_answers: layers.iter().any(Layer::looks_into_answers),
            layers,
            body_limit: body_limit.unwrap_or(limits::REQUEST_BODY),
        })
    }

    /// The layer that tells of requests, if there is one.
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::Telemetry(telemetry) => Some(telemetry),
            _ => None,
        })
    }

    /// Whether what the layers need can be used.
    pub(crate) async fn check(&self) -> Result<(), ConfigError> {
        for layer in &self.layers {
            layer.check().await?;
        }
        Ok(())
    }

    /// Asks each layer in turn. The first that objects answers.
    pub(crate) async fn request(&self, exchange: &mut Exchange) -> Result<(), Refused> {
        // What is compressed cannot be looked into.
        if self.looks_into_answers {
            exchange.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        for layer in &self.layers {
            layer.request(exchange).await?;
        }
        Ok(())
    }

    /// The answer of the server as the caller may see it: the innermost layer looks first.
    pub(crate) async fn answer(
        &self,
        exchange: &Exchange,
        response: Response<Body>,
        budget: &Budget,
    ) -> Response<Body> {
        let filters: Vec<_> = self.layers.iter().rev().filter_map(|layer| layer.filter(exchange)).collect();
        if filters.is_empty() {
            return response;
        }
        // In a box, so that requests that nobody looks into do not carry its size around.
        match Box::pin(filter::filtered(response, filters, budget)).await {
            Ok(response) => response,
            Err(refusal) => answer::refused(&refusal, exchange.id()),
        }
    }

    /// The answer, of which some layers want to know how it ends.
    pub(crate) fn observed(&self, exchange: &Exchange, response: Response<Body>) -> Response<Body> {
        let status = response.status();
        let observers: Vec<_> =
            self.layers.iter().filter_map(|layer| layer.observer(exchange, status)).collect();
        response.map(|body| body.observed(status, observers))
    }
}

/// The pages that may call, where the RunConfig names them, or the proxy serves this machine alone: then those of this
/// machine, or any page that its user opens could call. Without a port nobody knows what they are called.
fn origins(config: &RunConfig) -> Option<Middleware> {
    let mut allowed_origins = config.allowed_origins.clone();
    if allowed_origins.is_empty() && is_loopback(&config.host) && config.port != 0 {
        let hosts = ["localhost", "127.0.0.1", "[::1]"];
        allowed_origins = hosts.map(|host| format!("http://{host}:{}", config.port)).into();
    }
    (!allowed_origins.is_empty()).then_some(Middleware::Origin(run_config::Origin { allowed_origins }))
}

/// Nothing stands for this machine, too.
fn is_loopback(host: &str) -> bool {
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host.is_empty() || host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_others_cannot_call_a_proxy_of_this_machine() {
        let origins = |host: &str, allowed: &[&str]| {
            let allowed_origins = allowed.iter().map(|origin| (*origin).to_owned()).collect();
            let config = RunConfig { host: host.into(), port: 80, allowed_origins, ..RunConfig::default() };
            match origins(&config) {
                Some(Middleware::Origin(origins)) => origins.allowed_origins,
                _ => Vec::new(),
            }
        };
        let own = ["http://localhost:80", "http://127.0.0.1:80", "http://[::1]:80"];
        for host in ["", "localhost", "127.0.0.1", "::1", "[::1]"] {
            assert_eq!(origins(host, &[]), own, "{host}");
        }
        assert!(origins("0.0.0.0", &[]).is_empty());
        assert_eq!(origins("0.0.0.0", &["https://a.example"]), ["https://a.example"]);
    }
}
