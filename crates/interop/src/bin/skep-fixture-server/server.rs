//! The server's responses.

// Sampling, roots and logging are deprecated; the suite still tests them.
#![allow(deprecated)]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, model::*, service::RequestContext, service::SubscriptionContext,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::{inputs, prompts, resources, tools};

/// What all sessions share, and requests that are in none.
pub(crate) struct Shared {
    /// Seals what clients keep for the server.
    pub(crate) seal: RequestStateCodec,
    /// Subscribers get the list that changed.
    pub(crate) changed: broadcast::Sender<List>,
}

/// A list whose changes clients are notified of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List {
    Tools,
    Prompts,
}

impl Shared {
    pub(crate) fn new() -> Result<Arc<Self>> {
        let seal = RequestStateCodec::try_new(b"nothing that this protects is worth a secret")?;
        Ok(Arc::new(Self { seal, changed: broadcast::channel(16).0 }))
    }
}

/// The server, for one session, or for one request that is in none.
pub(crate) struct Fixture {
    pub(crate) shared: Arc<Shared>,
    /// The log level of the client.
    level: Mutex<LoggingLevel>,
    /// The receiver of a client that is about to listen: it may change a list as soon as its subscription is acknowledged,
    /// which is before [`listen`](ServerHandler::listen) is called.
    about_to_listen: Mutex<VecDeque<broadcast::Receiver<List>>>,
}

impl Fixture {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, level: Mutex::new(LoggingLevel::Debug), about_to_listen: Mutex::default() }
    }

    /// Logs at the client's level: since 2026-07-28 each request sets it.
    pub(crate) async fn log(&self, context: &RequestContext<RoleServer>, text: &str) {
        let least = if is_modern(context) {
            context.meta.log_level()
        } else {
            Some(*self.level.lock().unwrap_or_else(PoisonError::into_inner))
        };
        if least.is_some_and(|least| least as u8 <= LoggingLevel::Info as u8) {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
            context.peer.notify_logging_message(message).await.ok();
        }
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("skep-fixture-server", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        result(json!({"tools": tools::all()}))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tool = tools::all().into_iter().find(|tool| tool["name"] == name)?;
        serde_json::from_value(tool).ok()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name.starts_with("test_input_required_result_") {
            return inputs::tool(&self.shared, &request, &context);
        }
        tools::call(self, &request, &context).await.map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        result(json!({"prompts": prompts::all()}))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.shared, &request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = &request.argument.value;
        result(json!({"completion": {"values": [format!("{begun}ed"), format!("{begun}ing")]}}))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        result(json!({"resources": resources::all()}))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        result(json!({"resourceTemplates": resources::templates()}))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read: ReadResourceResult = result(json!({"contents": [resources::read(&request.uri)?]}))?;
        Ok(read.into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let changed = self.shared.changed.subscribe();
        self.about_to_listen.lock().unwrap_or_else(PoisonError::into_inner).push_back(changed);
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changed = self.about_to_listen.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let mut changed = changed.unwrap_or_else(|| self.shared.changed.subscribe());
        loop {
            let list = tokio::select! {
                () = context.cancelled() => return Ok(()),
                list = changed.recv() => list,
            };
            // The SDK filters what the client did not subscribe to.
            match list {
                Ok(List::Tools) => context.sink().notify_tool_list_changed().await.ok(),
                Ok(List::Prompts) => context.sink().notify_prompt_list_changed().await.ok(),
                Err(broadcast::error::RecvError::Lagged(_)) => None,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
        }
    }
}

/// A value of the SDK from its JSON, which is how the suite describes it.
pub(crate) fn of<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A complete result. For older revisions, the SDK omits that field.
pub(crate) fn result<T: serde::de::DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = "complete".into();
    of(value)
}
