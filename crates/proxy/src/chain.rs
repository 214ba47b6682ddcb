//! The layers that every request goes through, outermost first.

use http::{HeaderValue, Response, header};
use skep_config::{RunConfig, run_config::Middleware};

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
}

impl Chain {
    /// The chain that the RunConfig lists. A type that is not known ends the proxy: it may be one that protects.
    pub(crate) fn new(config: &RunConfig) -> Result<Self, ConfigError> {
        if config.embedded_auth_server_config.is_some() {
            return Err(no_auth_server("embedded_auth_server_config"));
        }
        let mut layers = Vec::new();
        let mut body_limit = None;
        for middleware in &config.middleware_configs {
            if let Middleware::BodyLimit(limit) = middleware {
                // Whoever lists two wants both to hold.
                let limit = usize::try_from(limit.max_bytes()).unwrap_or(usize::MAX);
                body_limit = Some(body_limit.map_or(limit, |other: usize| other.min(limit)));
                continue;
            }
            layers.extend(Layer::new(middleware, config)?);
        }
        Ok(Self { layers, body_limit: body_limit.unwrap_or(limits::REQUEST_BODY) })
    }

    /// The layer that tells of requests, if there is one.
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::Telemetry(telemetry) => Some(telemetry),
            _ => None,
        })
    }

    /// Asks each layer in turn. The first that objects answers.
    pub(crate) async fn request(&self, exchange: &mut Exchange) -> Result<(), Refused> {
        // What is compressed cannot be looked into.
        if self.layers.iter().any(Layer::looks_into_answers) {
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
        match filter::filtered(response, filters, budget).await {
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
