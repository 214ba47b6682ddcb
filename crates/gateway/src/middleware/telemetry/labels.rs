//! The labels of a request in metrics. Every value is one of a bounded number.

use std::time::Duration;

use http::Method;
use skep_config::run_config::Transport;
use skep_mcp::{Method as McpMethod, TargetKind};

use super::{
    names::{Names, OTHER, bare},
    outcome::Failure,
};
use crate::{
    message::{Exchange, ParsedMessage},
    truncate::truncate,
};

/// What a request is about, for metrics.
pub(super) struct Subject {
    /// The method of HTTP.
    pub(super) method: &'static str,
    /// The method of MCP.
    pub(super) mcp_method: Option<&'static str>,
    /// What it names, of those things that have labels.
    pub(super) target: Option<(TargetKind, String)>,
}

impl Subject {
    pub(super) fn of(exchange: &Exchange) -> Self {
        let message = exchange.message.as_ref().filter(|message| message.method.is_some());
        Self {
            method: http_method(&exchange.method),
            mcp_method: message.map(|message| message.method.and_then(McpMethod::name).unwrap_or(OTHER)),
            target: message.and_then(target),
        }
    }
}

/// What a message names, if it is a name. Cursors, tokens and ids are new each time.
pub(super) fn target(message: &ParsedMessage) -> Option<(TargetKind, String)> {
    let name = message.target.as_deref()?;
    let kind = message.method?.target()?;
    let name = match kind {
        TargetKind::Tool | TargetKind::Prompt | TargetKind::Client => truncate(name).into_owned(),
        TargetKind::Resource => truncate(&bare(name)).into_owned(),
        _ => return None,
    };
    Some((kind, name))
}

/// The method of HTTP. An unknown one is a text of the caller.
pub(super) fn http_method(method: &Method) -> &'static str {
    match *method {
        Method::POST => "POST",
        Method::GET => "GET",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => OTHER,
    }
}

/// The names that have their own series, by what they name.
#[derive(Default)]
pub(super) struct Known {
    tools: Names,
    prompts: Names,
    resources: Names,
    clients: Names,
}

/// The labels of one request that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) method: &'static str,
    pub(super) status_code: u16,
    pub(super) status: &'static str,
    pub(super) mcp_method: &'static str,
    pub(super) resource: String,
    pub(super) kind: Option<TargetKind>,
    pub(super) error_type: Option<String>,
}

/// The status of a response that the client did not wait for.
pub(super) const ABANDONED: u16 = 499;

impl Known {
    pub(super) fn labels(&self, subject: &Subject, status_code: u16, failure: Option<Failure>) -> Labels {
        // Some servers report an unknown tool as an error of the tool, and one that is down knows none.
        let real = failure.is_none();
        let resource = match &subject.target {
            None => String::new(),
            Some((kind, name)) => {
                let names = match kind {
                    TargetKind::Tool => &self.tools,
                    TargetKind::Prompt => &self.prompts,
                    TargetKind::Resource => &self.resources,
                    _ => &self.clients,
                };
                names.label(name, real).into_owned()
            }
        };
        Labels {
            method: subject.method,
            status_code,
            status: if failure.is_some() { "error" } else { "success" },
            mcp_method: subject.mcp_method.unwrap_or_default(),
            resource,
            kind: subject.target.as_ref().map(|(kind, _)| *kind),
            error_type: failure.and_then(Failure::error_type),
        }
    }
}

impl Labels {
    /// The tool that is called.
    pub(super) fn tool(&self) -> Option<&str> {
        (self.kind == Some(TargetKind::Tool)).then_some(&*self.resource)
    }

    /// The prompt that is fetched.
    pub(super) fn prompt(&self) -> Option<&str> {
        (self.kind == Some(TargetKind::Prompt)).then_some(&*self.resource)
    }
}

/// The server that all labels are about.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) transport: &'static str,
}

impl Server {
    pub(super) fn new(name: &str, transport: Transport) -> Self {
        Self { name: name.to_owned(), transport: transport.as_str() }
    }

    /// The transport to the server, in OpenTelemetry's terms.
    pub(super) fn network_transport(&self) -> &'static str {
        if self.transport == Transport::Stdio.as_str() { "pipe" } else { "tcp" }
    }

    /// The protocol on that transport.
    pub(super) fn network_protocol(&self) -> Option<&'static str> {
        (self.transport != Transport::Stdio.as_str()).then_some("http")
    }
}

/// What is measured of a request that has ended.
pub(super) struct Measured<'a> {
    pub(super) labels: &'a Labels,
    /// How long it took. A stream that was listened to has no such time.
    pub(super) took: Option<Duration>,
}
