//! What a request goes through. Each layer is a file, made from its part of the RunConfig.

mod audit;
mod authentication;
mod authorization;
mod aws_sts;
mod header_forward;
mod mutating_webhooks;
mod origin;
mod rate_limit;
mod strip_auth;
mod telemetry;
mod token_exchange;
mod tools;
mod validating_webhooks;
mod webhook;

use http::StatusCode;
use skep_config::{RunConfig, run_config::Middleware};

use crate::{ConfigError, answer::Refused, body::Observer, exchange::Exchange, filter::MessageFilter};
use audit::Audit;
use authentication::Authentication;
use authorization::Authorization;
use aws_sts::AwsSts;
use header_forward::HeaderForward;
use mutating_webhooks::MutatingWebhooks;
use origin::Origin;
use rate_limit::RateLimit;
pub(crate) use telemetry::{METRICS, Noted, Telemetry, elsewhere};
use token_exchange::TokenExchange;
use tools::{ToolCalls, ToolLists};
use validating_webhooks::ValidatingWebhooks;

/// One layer of the chain.
pub(crate) enum Layer {
    Origin(Origin),
    Audit(Audit),
    Authentication(Box<Authentication>),
    StripAuth,
    TokenExchange(Box<TokenExchange>),
    ToolLists(ToolLists),
    ToolCalls(ToolCalls),
    Telemetry(Telemetry),
    MutatingWebhooks(MutatingWebhooks),
    ValidatingWebhooks(ValidatingWebhooks),
    RateLimit(Box<RateLimit>),
    Authorization(Box<Authorization>),
    AwsSts(Box<AwsSts>),
    HeaderForward(HeaderForward),
}

impl Layer {
    /// The layer for a middleware, or nothing where the proxy does the same for every request.
    pub(crate) fn new(middleware: &Middleware, config: &RunConfig) -> Result<Option<Self>, ConfigError> {
        Ok(Some(match middleware {
            Middleware::Origin(parameters) => Self::Origin(Origin::new(parameters)?),
            Middleware::Audit(parameters) => Self::Audit(Audit::new(parameters)?),
            Middleware::Auth(parameters) => Self::Authentication(Box::new(Authentication::new(parameters)?)),
            Middleware::StripAuth => Self::StripAuth,
            Middleware::TokenExchange(parameters) => {
                Self::TokenExchange(Box::new(TokenExchange::new(&parameters.token_exchange_config)?))
            }
            Middleware::ToolFilter(parameters) => Self::ToolLists(ToolLists::new(parameters)),
            Middleware::ToolCallFilter(parameters) => Self::ToolCalls(ToolCalls::new(parameters)),
            Middleware::Telemetry(parameters) => {
                return Ok(Telemetry::new(parameters, &config.host)?.map(Self::Telemetry));
            }
            Middleware::RateLimit(parameters) => Self::RateLimit(Box::new(RateLimit::new(parameters)?)),
            Middleware::Authorization(parameters) => {
                Self::Authorization(Box::new(Authorization::new(parameters, &config.name)?))
            }
            Middleware::MutatingWebhook(parameters) => {
                Self::MutatingWebhooks(MutatingWebhooks::new(parameters)?)
            }
            Middleware::ValidatingWebhook(parameters) => {
                Self::ValidatingWebhooks(ValidatingWebhooks::new(parameters)?)
            }
            Middleware::AwsSts(parameters) => {
                Self::AwsSts(Box::new(AwsSts::new(parameters, &config.remote_url, config.transport)?))
            }
            // It takes tokens from the store of the proxy's own authorization server, and has nothing without one.
            Middleware::UpstreamSwap(_) => {
                return Err(no_auth_server("middleware_configs: \"upstreamswap\""));
            }
            Middleware::HeaderForward(parameters) => Self::HeaderForward(HeaderForward::new(parameters)?),
            // Bodies are limited as they are read, messages are read once before all layers, a panic ends one request
            // and nothing else, and nothing is reported to anybody.
            Middleware::BodyLimit(_)
            | Middleware::McpParser
            | Middleware::Recovery
            | Middleware::UsageMetrics => {
                return Ok(None);
            }
            Middleware::Unknown(unknown) => {
                let message = format!("middleware_configs: unsupported middleware type {:?}", unknown.type_);
                return Err(ConfigError::new(message));
            }
        }))
    }

    /// Whether what the layer needs can be used.
    pub(crate) async fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::RateLimit(layer) => layer.check().await,
            _ => Ok(()),
        }
    }

    /// Lets the request pass, changes it, or answers it.
    pub(crate) async fn request(&self, exchange: &mut Exchange) -> Result<(), Refused> {
        // Those that ask others are in boxes, so that requests without them do not carry their size around.
        match self {
            Self::Origin(layer) => layer.request(exchange),
            Self::Authentication(layer) => layer.request(exchange).await,
            Self::StripAuth => strip_auth::request(exchange),
            Self::Audit(_) | Self::ToolLists(_) => Ok(()),
            Self::TokenExchange(layer) => Box::pin(layer.request(exchange)).await,
            Self::ToolCalls(layer) => layer.request(exchange),
            Self::Telemetry(layer) => {
                layer.request(exchange);
                Ok(())
            }
            Self::MutatingWebhooks(layer) => Box::pin(layer.request(exchange)).await,
            Self::ValidatingWebhooks(layer) => Box::pin(layer.request(exchange)).await,
            Self::Authorization(layer) => layer.request(exchange).await,
            Self::AwsSts(layer) => Box::pin(layer.request(exchange)).await,
            Self::RateLimit(layer) => layer.request(exchange).await,
            Self::HeaderForward(layer) => layer.request(exchange),
        }
    }

    /// Whether the layer has a [`filter`](Self::filter).
    pub(crate) fn looks_into_answers(&self) -> bool {
        matches!(self, Self::ToolLists(_) | Self::Authorization(_))
    }

    /// What the layer does with the messages of the answer, if it does anything.
    pub(crate) fn filter(&self, exchange: &Exchange) -> Option<Box<dyn MessageFilter>> {
        match self {
            Self::ToolLists(layer) => Some(layer.filter()),
            Self::Authorization(layer) => layer.filter(exchange),
            _ => None,
        }
    }

    /// Whether the layer wants to know how the answer ends.
    pub(crate) fn observer(&self, exchange: &Exchange, status: StatusCode) -> Option<Box<dyn Observer>> {
        match self {
            Self::Audit(layer) => layer.observer(exchange),
            Self::Telemetry(layer) => layer.observer(exchange, status),
            _ => None,
        }
    }
}

/// A secret: from the file, or from the variable that the operator puts it into.
fn secret(configured: &str, variable: &str) -> String {
    if configured.is_empty() { std::env::var(variable).unwrap_or_default() } else { configured.to_owned() }
}

/// What is said to a configuration that asks for an authorization server of the proxy's own, or for what only that has.
pub(crate) fn no_auth_server(what: &str) -> ConfigError {
    ConfigError::new(format!(
        "{what} needs an authorization server of the proxy's own, which is not supported by this version"
    ))
}
