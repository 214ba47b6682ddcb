//! `subscriptions/listen`: since 2026-07-28, a client that has no session names what it wants to hear of.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderValue, Response};
use serde_json::{Map, Value, json};
use skep_gateway::http::Body;
use skep_mcp::{Envelope, Era, Kind, Method, Raw, SessionId};

use super::{
    ClientRequest, Front,
    announce::Listener,
    from_backend::{SUBSCRIPTION_ID, retagged},
    rpc::{self, RpcError},
};
use crate::{
    backend::{Backend, VERSION},
    session::{Client, ClientSession, Known},
};

/// What one stream is for.
pub(super) struct Subscription {
    /// The id of its request, as it is spelled.
    id: Box<str>,
    server: Arc<str>,
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<Box<str>>,
}

impl Front {
    /// Opens a stream. It has a session of its own, which ends with it.
    pub(super) async fn listen_for(self: &Arc<Self>, request: &ClientRequest<'_>) -> Response<Body> {
        let wanted = request.envelope.params().and_then(|params| params.get("notifications"));
        let Some(wanted) = wanted.filter(|wanted| wanted.kind() == Kind::Object) else {
            return RpcError::invalid("params.notifications must be an object")
                .response(request.id, request.era);
        };
        let client = Client {
            owner: request.session.owner,
            era: Era::Modern,
            capabilities: request.session.capabilities.clone(),
            shared: None,
        };
        let (id, session) = (SessionId::random(), self.new_session(client));
        let put = self.stateless.put(id.as_str(), Known(session.clone()), request.exchange.peer.ip());
        if put.is_err() {
            return RpcError::internal("there are too many streams").response(request.id, request.era);
        }
        let queue = session.outbox.open();
        self.views.catalog(&session, &request.caller).await;
        let is_wanted = |name: &str| wanted.get(name).is_some_and(|wanted| wanted.as_str() == "true");
        let subscription = Subscription {
            id: request.id.into(),
            server: self.name.clone(),
            tools: is_wanted("toolsListChanged"),
            prompts: is_wanted("promptsListChanged"),
            resources: is_wanted("resourcesListChanged"),
            uris: self.subscribe_all(request, &session, wanted).await,
        };
        // What the client was sent last is what it was sent without this stream.
        session.show_all(|list| request.session.shown(list).unwrap_or_else(|| self.views.peek(&session)));
        let listener = Listener {
            session,
            caller: request.caller.clone(),
            filters: self.chain.list_filters(request.exchange),
        };
        let (sessions, id) = (self.stateless.clone(), id.as_str().to_owned());
        let mut response = self.listening(sessions, id, listener, queue, Some(subscription)).response();
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }

    /// Subscribes to resources at their backends, and returns those for which that is possible.
    async fn subscribe_all(
        &self,
        request: &ClientRequest<'_>,
        session: &Arc<ClientSession>,
        wanted: Raw<'_>,
    ) -> BTreeSet<Box<str>> {
        let uris = wanted.get("resourceSubscriptions").and_then(|uris| uris.items().ok()).unwrap_or_default();
        for uri in uris.iter().filter_map(|uri| uri.as_text()) {
            session.subscribe(&uri);
        }
        let subscribed = session.subscriptions();
        let catalog = self.views.current(session);
        let backend_of = |uri: &str| {
            let origin = catalog.resource(uri)?.origin()?;
            self.views.backend(&origin.backend)
        };
        let mut backends: Vec<Arc<Backend>> = subscribed.iter().filter_map(|uri| backend_of(uri)).collect();
        backends.sort_by(|one, other| one.name.cmp(&other.name));
        backends.dedup_by(|one, other| one.name == other.name);
        let links = join_all(backends.iter().map(|backend| async {
            let link = self.link(session, &request.caller, backend).await.ok()?;
            link.capabilities.subscribe.then(|| backend.name.clone())
        }));
        let willing: BTreeSet<Arc<str>> = links.await.into_iter().flatten().collect();
        let is_heard = |uri: &str| backend_of(uri).is_some_and(|backend| willing.contains(&backend.name));
        subscribed.into_iter().filter(|uri| is_heard(uri)).collect()
    }
}

impl Subscription {
    /// What the client will hear of.
    pub(super) fn acknowledgement(&self) -> Bytes {
        let mut honoured = Map::new();
        for (is_wanted, name) in [
            (self.tools, "toolsListChanged"),
            (self.prompts, "promptsListChanged"),
            (self.resources, "resourcesListChanged"),
        ] {
            if is_wanted {
                honoured.insert(name.to_owned(), true.into());
            }
        }
        if !self.uris.is_empty() {
            let uris = self.uris.iter().map(|uri| Value::from(&**uri)).collect();
            honoured.insert("resourceSubscriptions".to_owned(), Value::Array(uris));
        }
        let honoured = Value::Object(honoured);
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{honoured},"_meta":{{"{SUBSCRIPTION_ID}":{}}}}}}}"#,
            self.id
        )
        .into()
    }

    /// The notification as the client gets it, if it wants to.
    pub(super) fn tagged(&self, message: &Bytes) -> Option<Bytes> {
        let envelope = Envelope::parse(message).ok()?;
        let is_wanted = match envelope.method()? {
            Method::ToolsListChanged => self.tools,
            Method::PromptsListChanged => self.prompts,
            Method::ResourcesListChanged => self.resources,
            Method::ResourcesUpdated => {
                envelope.target().is_some_and(|target| self.uris.contains(&*target.name()))
            }
            _ => false,
        };
        is_wanted.then(|| retagged(&envelope, Some(&self.id)))?
    }

    /// The response, when the stream ends.
    pub(super) fn result(&self) -> Bytes {
        let info = json!({"name": &*self.server, "version": VERSION});
        let result = format!(
            r#"{{"resultType":"complete","_meta":{{"{SUBSCRIPTION_ID}":{},"io.modelcontextprotocol/serverInfo":{info}}}}}"#,
            self.id
        );
        rpc::result_body(&self.id, &result).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_what_was_subscribed_to_under_the_id_of_its_request() {
        let subscription = Subscription {
            id: "\"s\"".into(),
            server: "kit".into(),
            tools: true,
            prompts: false,
            resources: false,
            uris: BTreeSet::from(["kit://1".into()]),
        };
        let acknowledged: Value = serde_json::from_slice(&subscription.acknowledgement()).unwrap();
        assert_eq!(
            acknowledged["params"]["notifications"],
            json!({"toolsListChanged": true, "resourceSubscriptions": ["kit://1"]})
        );
        let tagged = |message: &'static str| {
            let message = subscription.tagged(&Bytes::from_static(message.as_bytes()))?;
            Some(serde_json::from_slice::<Value>(&message).unwrap()["params"].clone())
        };
        assert_eq!(
            tagged(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
            Some(json!({"_meta": {SUBSCRIPTION_ID: "s"}}))
        );
        assert_eq!(
            tagged(
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"kit://1","_meta":{"io.modelcontextprotocol/subscriptionId":9}}}"#
            ),
            Some(json!({"uri": "kit://1", "_meta": {SUBSCRIPTION_ID: "s"}}))
        );
        for other in [
            r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"kit://2"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
        ] {
            assert_eq!(tagged(other), None, "{other}");
        }
    }
}
