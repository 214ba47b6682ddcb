//! One request in flight.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts, uri::PathAndQuery};
use skep_mcp::{
    Envelope, Era, Id, Method as McpMethod, Raw, Rejection,
    header::{MCP_PARAM_PREFIX, encoded_name},
    tree_size,
};
use tracing::{Level, enabled};
use uuid::Uuid;

use super::{ParsedMessage, RequestMetrics, ToolHints};
use crate::{
    body::{Budget, Share},
    context::request_context,
    headers::{MCP_METHOD, MCP_NAME, MCP_SESSION_ID},
    http::{ErrorResponse, REQUEST_ID, response},
    identity::{Holder, Identity, Owner},
    truncate::truncate,
};

/// A request, with what is known of it.
pub struct Exchange {
    /// When it arrived.
    pub started: Instant,
    /// The method of HTTP.
    pub method: Method,
    /// Its path, with the query.
    pub path: PathAndQuery,
    /// Its headers, without those of the connection.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Whether a middleware has changed the body: then the client may not see it.
    pub is_changed: bool,
    /// The memory that the body takes.
    pub(super) share: Share,
    /// The address of the client.
    pub peer: SocketAddr,
    /// The message that the body holds, if it holds one.
    pub message: Option<ParsedMessage>,
    /// Its sender.
    pub caller: Caller,
    /// The reason why it is processed.
    pub origin: Origin,
    /// The backend that it was sent to, where there are several.
    pub backend: OnceLock<Arc<str>>,
    /// Its measurements, if anything is measured.
    pub metrics: Option<Arc<dyn RequestMetrics>>,
    /// The middleware that rejected it, by its type.
    pub rejected_by: Option<&'static str>,
    /// The hints of the tool that it calls, where the endpoint knows them.
    pub hints: Option<ToolHints>,
    /// The id of its entry in the audit log, once it is needed.
    audit_id: OnceLock<Uuid>,
}

/// The sender of a request, with its credentials.
#[derive(Clone, Default)]
pub struct Caller {
    /// The identity, once it is known.
    pub identity: Option<Arc<Identity>>,
    /// The identity with the claims of an identity provider, where policies are about these.
    pub principal: Option<Arc<Identity>>,
    /// The credential of the caller, where a middleware has replaced it.
    pub authorization: Option<HeaderValue>,
    /// Signs other requests that are sent for this one.
    pub signer: Option<Arc<dyn SignRequest>>,
}

/// The reason why a request is processed.
#[derive(Clone, Debug, Default)]
pub enum Origin {
    /// A client sent it.
    #[default]
    Client,
    /// A client sent it inside a call of a tool of the endpoint.
    Unwrapped,
    /// A tool of the endpoint makes it.
    Part(Part),
}

impl Origin {
    /// Whether a client sent the request inside a call of a tool of the endpoint.
    pub fn is_unwrapped(&self) -> bool {
        matches!(self, Self::Unwrapped)
    }

    /// The workflow that makes the request, where policies see that instead of the caller.
    pub fn workflow(&self) -> Option<&Arc<Identity>> {
        match self {
            Self::Part(part) => part.workflow.as_ref(),
            Self::Client | Self::Unwrapped => None,
        }
    }
}

/// A tool call that makes other calls.
#[derive(Clone, Debug)]
pub struct Part {
    /// The tool.
    pub tool: Arc<str>,
    /// The id of the entry of its call in the audit log.
    pub audit_id: Uuid,
    /// The workflow that runs, where policies see that instead of the caller.
    pub workflow: Option<Arc<Identity>>,
}

/// Signs requests for the server.
pub trait SignRequest: Send + Sync {
    /// Replaces the signature in these headers by that of a request with this method, path and body.
    fn sign(
        &self,
        requested: (&Method, &PathAndQuery),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), Rejection>;
}

impl Exchange {
    /// A request whose body has not been read yet.
    pub fn new(head: Parts, peer: SocketAddr, budget: &Budget) -> Self {
        let path = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Self::with((head.method, path, head.headers), budget.share(), peer)
    }

    /// A request of which only the head is known.
    fn with(
        (method, path, headers): (Method, PathAndQuery, HeaderMap),
        share: Share,
        peer: SocketAddr,
    ) -> Self {
        Self {
            started: Instant::now(),
            method,
            path,
            headers,
            body: Bytes::new(),
            is_changed: false,
            share,
            peer,
            message: None,
            caller: Caller::default(),
            origin: Origin::Client,
            backend: OnceLock::new(),
            metrics: None,
            rejected_by: None,
            hints: None,
            audit_id: OnceLock::new(),
        }
    }

    /// Another request to the same path.
    fn another(&self, headers: HeaderMap, body: Bytes, message: ParsedMessage) -> Self {
        let head = (Method::POST, self.path.clone(), headers);
        Self { body, message: Some(message), ..Self::with(head, self.share.another(), self.peer) }
    }

    /// The id that a response must carry.
    pub fn id(&self) -> Option<Id<'_>> {
        self.message.as_ref().and_then(ParsedMessage::id)
    }

    /// The id of its entry in the audit log.
    pub fn audit_id(&self) -> Uuid {
        *self.audit_id.get_or_init(Uuid::new_v4)
    }

    /// Whether only the client ends its response: it listens for what the server sends by itself.
    pub fn listens(&self) -> bool {
        let method = self.message.as_ref().and_then(|message| message.method);
        self.method == Method::GET || method == Some(McpMethod::SubscriptionsListen)
    }

    /// Whose session a request of this caller may use.
    pub fn owner(&self) -> Owner {
        Owner::of(self.caller.identity.as_deref())
    }

    /// Whose memory it takes.
    pub fn holder(&self) -> Holder {
        Holder::of(self.caller.identity.as_deref(), self.peer.ip())
    }

    /// The memory for what is kept because of it after it has ended, or until its client reads it: the caller's part.
    pub fn memory(&self) -> Budget {
        self.share.part_of(self.holder())
    }

    /// What the tree of this JSON takes of it, while that is needed.
    pub(crate) fn tree_memory(&self, json: &[u8]) -> Result<Share, Rejection> {
        let mut share = self.memory().share();
        let size = std::str::from_utf8(json).map_or(0, tree_size);
        share.grow(size).map_err(|_| Rejection::Unavailable("memory"))?;
        Ok(share)
    }

    /// Whether these arguments are the same, however they are spelled. Without memory for their trees, they are not.
    fn is_same(&self, before: Option<Raw<'_>>, after: Option<Raw<'_>>) -> bool {
        let (Some(before), Some(after)) = (before, after) else { return before == after };
        let [before, after] = [before, after].map(|arguments| arguments.as_str());
        let memory = || {
            Ok::<_, Rejection>([self.tree_memory(before.as_bytes())?, self.tree_memory(after.as_bytes())?])
        };
        let tree = |text| serde_json::from_str::<serde_json::Value>(text).ok();
        before == after
            || memory().is_ok_and(|_memory| {
                tree(before).is_some_and(|before| tree(after).is_some_and(|after| before == after))
            })
    }

    /// The headers for a request of the endpoint itself for this caller: without those about the message and its session.
    pub fn credentials(&self) -> HeaderMap {
        let is_about_message = |name: &HeaderName| {
            name.as_str().starts_with("mcp-") || name.as_str().starts_with("content-") || *name == REQUEST_ID
        };
        let others = self.headers.iter().filter(|(name, _)| !is_about_message(name));
        others.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Adds the method and the tool to the log lines of the request, now that its message has been parsed.
    pub fn describe(&self) {
        let Some(message) = self.message.as_ref().filter(|_| enabled!(Level::DEBUG)) else { return };
        let target = message.target.as_deref().unwrap_or_default();
        let tool = (message.method == Some(McpMethod::ToolsCall)).then(|| truncate(target).into_owned());
        if let Some(context) = request_context() {
            context.describe(truncate(&message.method_name).into_owned(), tool);
        }
    }

    /// The response that rejects this request.
    pub fn reject(&self, rejection: &Rejection) -> ErrorResponse {
        Box::new(response::error(rejection, self.id()))
    }

    /// The request that starts this request's session again, with the same headers from the same caller. Its caller is not
    /// known yet, as for every request that has not passed through the middlewares.
    pub fn initialize(&self, body: Bytes) -> Result<Self, Rejection> {
        let mut headers = self.headers.clone();
        for name in [&MCP_SESSION_ID, &MCP_METHOD, &MCP_NAME] {
            headers.remove(name);
        }
        if let Some(authorization) = &self.caller.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let message = ParsedMessage::of(&headers, &body)?;
        if !message.is_initialize() || message.id.is_none() || message.era != Era::Legacy {
            return Err(Rejection::Session);
        }
        Ok(self.another(headers, body, message))
    }

    /// A call of a tool that is made for this request and its caller, which is known.
    pub fn call(&self, tool: &str, body: Bytes) -> Result<Self, Rejection> {
        let mut headers = self.headers.clone();
        // They mirror parameters of this request.
        let mirrors = self.headers.keys().filter(|name| name.as_str().starts_with(MCP_PARAM_PREFIX));
        mirrors.for_each(|name| drop(headers.remove(name)));
        if headers.contains_key(&MCP_NAME) {
            let name = HeaderValue::from_str(&encoded_name(tool)).map_err(|_| Rejection::Internal)?;
            headers.insert(&MCP_NAME, name);
        }
        let message = ParsedMessage::of(&headers, &body)?;
        Ok(Self { caller: self.caller.clone(), ..self.another(headers, body, message) })
    }

    /// Replaces the message, and parses the new one like the first.
    pub fn replace_body(&mut self, body: Bytes) -> Result<(), Rejection> {
        let envelope = Envelope::parse(&body).map_err(Rejection::Message)?;
        let message = self.other_message(&envelope, &body)?;
        self.replace(message, body);
        Ok(())
    }

    /// The same for a message that may name something else: the header that mirrors the name changes with it. Those that mirror
    /// arguments are removed if these change, as it is not known which they mirror. If it is rejected, nothing changes.
    pub fn replace_message(&mut self, body: Bytes) -> Result<(), Rejection> {
        let envelope = Envelope::parse(&body).map_err(Rejection::Message)?;
        let is_parameter = |name: &HeaderName| name.as_str().starts_with(MCP_PARAM_PREFIX);
        let mut parameters: Vec<HeaderName> =
            self.headers.keys().filter(|name| is_parameter(name)).cloned().collect();
        if !parameters.is_empty()
            && let Some(Ok(before)) = self.message.as_ref().map(ParsedMessage::envelope)
            && self.is_same(before.arguments(), envelope.arguments())
        {
            parameters.clear();
        }
        let mirrored = self.headers.get(&MCP_NAME).cloned();
        if mirrored.is_some()
            && let Some(target) = envelope.target()
        {
            let name =
                HeaderValue::from_str(&encoded_name(&target.name())).map_err(|_| Rejection::Internal)?;
            self.headers.insert(&MCP_NAME, name);
        }
        let message = self.other_message(&envelope, &body).inspect_err(|_| {
            if let Some(mirrored) = mirrored {
                self.headers.insert(&MCP_NAME, mirrored);
            }
        })?;
        for name in parameters {
            self.headers.remove(name);
        }
        self.replace(message, body);
        Ok(())
    }

    /// The message of this envelope, in the place of the one that there is.
    fn other_message(&self, envelope: &Envelope<'_>, body: &Bytes) -> Result<ParsedMessage, Rejection> {
        match &self.message {
            Some(message) => message.replaced(&self.headers, envelope, body),
            None => ParsedMessage::with_headers(&self.headers, envelope, body),
        }
    }

    fn replace(&mut self, message: ParsedMessage, body: Bytes) {
        (self.message, self.body) = (Some(message), body);
        self.is_changed = true;
        // It may call another tool.
        self.hints = None;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use http::Request;

    use super::*;

    #[test]
    fn arguments_are_compared_only_within_the_memory_of_the_caller() {
        let raw = |text| Raw::spelled(text);
        let (small, spaced) = (r#"{"a":[1,2]}"#, r#"{ "a": [1, 2] }"#);
        let large = format!(r#"{{"a":[{}[0]]}}"#, "[0],".repeat(1 << 12));
        let large_spaced = large.replacen(':', ": ", 1);
        let (head, ()) = Request::post("/mcp").body(()).unwrap().into_parts();
        let exchange = Exchange::new(head, (Ipv4Addr::LOCALHOST, 1).into(), &Budget::new(1 << 18));
        for (before, after, is_same) in [
            (raw(small), raw(spaced), true),
            (raw(small), raw(r#"{"a":[2,1]}"#), false),
            (raw(small), None, false),
            (None, None, true),
            (raw(&large), raw(&large), true),
            (raw(&large), raw(&large_spaced), false),
            (raw(r#"{"a":1e999}"#), raw(r#"{"a":2e999}"#), false),
        ] {
            assert_eq!(exchange.is_same(before, after), is_same, "{after:?}");
        }
        assert!(exchange.tree_memory(small.as_bytes()).is_ok(), "what was compared is not counted any more");
    }
}
