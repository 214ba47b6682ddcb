//! The layers that every request goes through, outermost first.

use http::{Response, StatusCode};
use skep_config::{RunConfig, run_config::Middleware};

use crate::{
    ConfigError,
    answer::{self, Refused},
    body::Body,
    exchange::Exchange,
    filter,
    layers::Layer,
    limits,
};

/// The layers of a proxy.
pub(crate) struct Chain {
    layers: Vec<Layer>,
    /// The largest body of a request.
    pub(crate) body_limit: usize,
}

impl Chain {
    /// The chain that the RunConfig lists. A type that is not known ends the proxy: it may be one that protects.
    pub(crate) fn new(config: &RunConfig) -> Result<Self, ConfigError> {
        let mut layers = Vec::new();
        let mut body_limit = limits::REQUEST_BODY;
        for middleware in &config.middleware_configs {
            if let Middleware::BodyLimit(limit) = middleware {
                body_limit =
                    usize::try_from(limit.max_bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(body_limit);
                continue;
            }
            layers.extend(Layer::new(middleware, config)?);
        }
        Ok(Self { layers, body_limit })
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
        for layer in &self.layers {
            layer.request(exchange).await?;
        }
        Ok(())
    }

    /// The answer of the server as the caller may see it: the innermost layer looks first.
    pub(crate) async fn answer(&self, exchange: &Exchange, response: Response<Body>) -> Response<Body> {
        let filters: Vec<_> = self.layers.iter().rev().filter_map(|layer| layer.filter(exchange)).collect();
        if filters.is_empty() || response.status() == StatusCode::ACCEPTED {
            return response;
        }
        match filter::filtered(response, filters).await {
            Ok(response) => response,
            Err(refusal) => answer::refused(&refusal, exchange.id()),
        }
    }

    /// The answer, of which some layers want to know how it ends.
    pub(crate) fn observed(&self, exchange: &Exchange, response: Response<Body>) -> Response<Body> {
        let observers: Vec<_> = self.layers.iter().filter_map(|layer| layer.observer(exchange)).collect();
        let status = response.status();
        response.map(|body| body.observed(status, observers))
    }
}
