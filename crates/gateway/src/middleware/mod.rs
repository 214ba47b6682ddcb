//! Middlewares. Each is a file, and is created from its own part of a configuration.

mod audit;
mod authentication;
mod authorization;
mod aws_sts;
mod calls;
mod chain;
mod explain;
mod extras;
mod header_forward;
mod mutating_webhooks;
mod oauth_events;
mod origin;
mod provider;
mod provider_token;
mod rate_limit;
mod strip_auth;
mod telemetry;
mod token_exchange;
mod tools;
mod upstream_swap;
mod validating_webhooks;
mod webhook;

use http::StatusCode;
use skep_config::run_config::{self, Oidc};

use crate::{
    ConfigError,
    http::{ErrorResponse, Observer},
    message::{Exchange, MessageFilter},
};
use audit::Audit;
use authentication::Authentication;
use authorization::Authorization;
pub use authorization::{CallerTools, ToolSource, Tools, tool_hints};
use aws_sts::AwsSts;
pub use calls::{CALLS_EVENT, CONNECTIONS_EVENT, COUNTS_EVENT, Call, CallLog, CallsPage, Counts, Traffic};
pub use chain::{Chain, ChainContext, InFlight};
pub use explain::{Caller, Explanation, Outcome, explain, explain_list};
pub use extras::Extras;
use header_forward::HeaderForward;
use mutating_webhooks::MutatingWebhooks;
pub use oauth_events::OauthEvent;
use origin::Origin;
use rate_limit::RateLimit;
pub use telemetry::{
    BackendRequest, BackendState, METRICS, Page, SearchEvent, Telemetry, WorkflowRun, not_served,
};
use token_exchange::TokenExchange;
use tools::{ToolCalls, ToolLists};
use upstream_swap::UpstreamSwap;
use validating_webhooks::ValidatingWebhooks;

/// One middleware of the chain.
pub(crate) enum Middleware {
    Origin(Origin),
    Audit(Audit),
    Authentication(Box<Authentication>),
    StripAuth,
    UpstreamSwap(Box<UpstreamSwap>),
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

impl Middleware {
    /// The middleware of this configuration, or nothing where the same is done for every request.
    /// `oidc` is how callers are authenticated.
    fn new(
        config: &run_config::Middleware,
        oidc: Option<&Oidc>,
        context: &ChainContext<'_>,
    ) -> Result<Option<Self>, ConfigError> {
        use run_config::Middleware as Config;
        Ok(Some(match config {
            Config::Origin(parameters) => Self::Origin(Origin::new(parameters)?),
            Config::Audit(parameters) => Self::Audit(Audit::new(parameters, context.trusts_proxy_headers)?),
            Config::Auth(parameters) => {
                Self::Authentication(Box::new(Authentication::new(parameters, context)?))
            }
            Config::StripAuth => Self::StripAuth,
            Config::TokenExchange(parameters) => {
                Self::TokenExchange(Box::new(TokenExchange::new(&parameters.token_exchange_config)?))
            }
            Config::ToolFilter(parameters) => Self::ToolLists(ToolLists::new(parameters)),
            Config::ToolCallFilter(parameters) => Self::ToolCalls(ToolCalls::new(parameters)),
            Config::Telemetry(parameters) => {
                return Ok(Telemetry::new(parameters, context)?.map(Self::Telemetry));
            }
            Config::RateLimit(parameters) => Self::RateLimit(Box::new(RateLimit::new(parameters)?)),
            Config::Authorization(parameters) => {
                Self::Authorization(Box::new(Authorization::new(parameters, context)?))
            }
            Config::MutatingWebhook(parameters) => Self::MutatingWebhooks(MutatingWebhooks::new(parameters)?),
            Config::ValidatingWebhook(parameters) => {
                Self::ValidatingWebhooks(ValidatingWebhooks::new(parameters)?)
            }
            Config::AwsSts(parameters) => Self::AwsSts(Box::new(AwsSts::new(parameters, oidc, context)?)),
            Config::UpstreamSwap(parameters) => {
                Self::UpstreamSwap(Box::new(UpstreamSwap::new(&parameters.config, oidc, context)?))
            }
            Config::HeaderForward(parameters) => Self::HeaderForward(HeaderForward::new(parameters)?),
            // Bodies are limited as they are read, messages are parsed before all middlewares, a panic ends one request
            // and nothing else, and no usage is reported.
            Config::BodyLimit(_) | Config::McpParser | Config::Recovery | Config::UsageMetrics => {
                return Ok(None);
            }
            Config::Unknown(unknown) => {
                let message = format!("middleware_configs: unsupported middleware type {:?}", unknown.type_);
                return Err(ConfigError::new(message));
            }
        }))
    }

    /// Checks that what the middleware needs can be used.
    async fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::RateLimit(middleware) => middleware.check().await,
            _ => Ok(()),
        }
    }

    /// Lets the request pass, changes it, or responds to it. `tools` are those that it may call.
    async fn request(&self, exchange: &mut Exchange, tools: Option<Tools<'_>>) -> Result<(), ErrorResponse> {
        // Those that send requests themselves are in boxes, so that requests without them do not carry their size around.
        match self {
            Self::Origin(middleware) => middleware.request(exchange),
            Self::Authentication(middleware) => middleware.request(exchange).await,
            Self::StripAuth => strip_auth::request(exchange),
            Self::Audit(_) | Self::ToolLists(_) => Ok(()),
            Self::UpstreamSwap(middleware) => Box::pin(middleware.request(exchange)).await,
            Self::TokenExchange(middleware) => Box::pin(middleware.request(exchange)).await,
            Self::ToolCalls(middleware) => middleware.request(exchange),
            Self::Telemetry(middleware) => {
                middleware.request(exchange);
                Ok(())
            }
            Self::MutatingWebhooks(middleware) => Box::pin(middleware.request(exchange)).await,
            Self::ValidatingWebhooks(middleware) => Box::pin(middleware.request(exchange)).await,
            Self::Authorization(middleware) => middleware.request(exchange, tools).await,
            Self::AwsSts(middleware) => Box::pin(middleware.request(exchange)).await,
            Self::RateLimit(middleware) => middleware.request(exchange).await,
            Self::HeaderForward(middleware) => {
                middleware.add(exchange);
                Ok(())
            }
        }
    }

    /// What decides about a request, for people.
    fn reasons(&self, exchange: &Exchange) -> Vec<String> {
        match self {
            Self::Authorization(middleware) => middleware.reasons(exchange),
            _ => Vec::new(),
        }
    }

    /// Why only a running endpoint can decide about a request, for people, if that is so.
    fn undecided(&self, exchange: &Exchange) -> Option<Vec<String>> {
        match self {
            Self::Authorization(middleware) => middleware.undecided(exchange),
            _ => None,
        }
    }

    /// The same for a list of these tools.
    fn undecided_list(&self, exchange: &Exchange, tools: &[serde_json::Value]) -> Option<String> {
        match self {
            Self::Authorization(middleware) => middleware.undecided_list(exchange, tools),
            _ => None,
        }
    }

    /// Whether it decides by the head of a request: then it does so before the body is read.
    fn reads_head_only(&self) -> bool {
        matches!(self, Self::Origin(_) | Self::Authentication(_))
    }

    /// Whether the middleware has a [`filter`](Self::filter).
    fn reads_responses(&self) -> bool {
        matches!(self, Self::ToolLists(_) | Self::Authorization(_))
    }

    /// The middleware's filter for the messages of the response, if it has one.
    fn filter(&self, exchange: &Exchange) -> Option<Box<dyn MessageFilter>> {
        match self {
            Self::ToolLists(middleware) => Some(middleware.filter()),
            Self::Authorization(middleware) => middleware.filter(exchange),
            _ => None,
        }
    }

    /// The middleware's observer of the end of the response, if it has one.
    fn observer(&self, exchange: &Exchange, status: StatusCode) -> Option<Box<dyn Observer>> {
        match self {
            Self::Audit(middleware) => middleware.observer(exchange, status),
            Self::Telemetry(middleware) => middleware.observer(exchange, status),
            _ => None,
        }
    }

    /// Waits until what it writes itself has been written, within a limit.
    async fn flush(&self) {
        if let Self::Audit(middleware) = self {
            middleware.flush().await;
        }
    }

    /// Records a request whose client disconnected before the response.
    fn abandoned(&self, exchange: &Exchange) {
        match self {
            Self::Audit(middleware) => middleware.abandoned(exchange),
            Self::Telemetry(middleware) => middleware.abandoned(exchange),
            _ => {}
        }
    }
}

/// The type of a middleware, as RunConfigs have it.
fn type_name(config: &run_config::Middleware) -> &'static str {
    use run_config::Middleware as Config;
    match config {
        Config::Origin(_) => "origin",
        Config::Auth(_) => "auth",
        Config::StripAuth => "strip-auth",
        Config::TokenExchange(_) => "tokenexchange",
        Config::UpstreamSwap(_) => "upstreamswap",
        Config::AwsSts(_) => "awssts",
        Config::ToolFilter(_) => "tool-filter",
        Config::ToolCallFilter(_) => "tool-call-filter",
        Config::Authorization(_) => "authorization",
        Config::MutatingWebhook(_) => "mutating-webhook",
        Config::ValidatingWebhook(_) => "validating-webhook",
        Config::RateLimit(_) => "ratelimit",
        Config::Audit(_) => "audit",
        Config::HeaderForward(_) => "header-forward",
        Config::Telemetry(_) => "telemetry",
        Config::BodyLimit(_) => "body-limit",
        Config::McpParser => "mcp-parser",
        Config::Recovery => "recovery",
        Config::UsageMetrics => "usagemetrics",
        Config::Unknown(_) => "unknown",
    }
}

/// A secret: from the file, or from the variable that the operator puts it into.
fn secret(configured: &str, variable: &str) -> String {
    if configured.is_empty() { std::env::var(variable).unwrap_or_default() } else { configured.to_owned() }
}
