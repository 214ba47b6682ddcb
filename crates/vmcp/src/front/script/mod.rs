//! Code mode: a call that runs a script, which calls other tools.

mod description;
mod host;

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use skep_gateway::{http::Body, message::Part};
use skep_mcp::{Envelope, Kind, List, Message, Outcome, Raw};
use skep_script::{Script, ScriptError};

use super::{
    ClientRequest, Front,
    answer::tool_error,
    own::{Calls, Trees},
    rpc::{self, RpcError, UNKNOWN_STATE},
};
use crate::{
    catalog::{Catalog, field},
    scripts::EXECUTE_TOOL_SCRIPT,
};
use description::described_tool;
pub(super) use description::runs_scripts;
use host::ScriptHost;

/// The arguments of the tool.
struct Wanted {
    source: String,
    data: Map<String, Value>,
}

impl Front {
    /// Runs a script.
    pub(super) async fn run_script(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        catalog: Arc<Catalog>,
    ) -> Response<Body> {
        // It would run a second time.
        if request.envelope.params().is_some_and(|params| params.get("requestState").is_some()) {
            return RpcError::invalid(UNKNOWN_STATE).response(request.id, request.era);
        }
        let failed = |message: &str| self.tool_result(request, tool_error(message));
        let Some(scripts) = self.scripts.clone() else { return failed("scripts are not enabled") };
        let holder = request.exchange.holder();
        let trees = Trees::new(&self.budget.part_of(Some(holder)));
        let Wanted { source, data } = match Wanted::of(&request.envelope, &trees) {
            Ok(wanted) => wanted,
            Err(mistake) => return failed(&mistake),
        };
        let Some(admitted) = scripts.admit(holder) else {
            return failed("too many of your scripts are running: wait until one has ended");
        };
        let tools = self.visible_tools(request, &catalog).await;
        let part =
            Part { tool: EXECUTE_TOOL_SCRIPT.into(), audit_id: request.exchange.audit_id(), workflow: None };
        let run = |calls: Calls| async move {
            let _trees = trees;
            let script = Script { source: &source, data, tools };
            let host = ScriptHost::new(&calls, part);
            let outcome = skep_script::run(script, &scripts.limits, admitted.shared(), &host).await;
            result(outcome.result, &outcome.logs)
        };
        match self.start_own(request, catalog, None, run) {
            Ok(call) => call.respond().await,
            Err(error) => error.response(request.id, request.era),
        }
    }

    /// All tools that the caller may call, as the response to a request for their list.
    async fn visible_list(&self, request: &ClientRequest<'_>, catalog: &Catalog) -> Bytes {
        let tools: Vec<&str> = catalog.table(List::Tools).iter().map(|entry| entry.json()).collect();
        let list = format!("{{\"{}\":[{}]}}", field(List::Tools), tools.join(","));
        let response = rpc::result(request.id, &list, request.era);
        let seen = self.chain.filter(request.exchange, response, &self.budget).await;
        seen.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default()
    }

    /// The tool that runs scripts, with the description for this caller.
    pub(super) async fn described_script(
        &self,
        request: &ClientRequest<'_>,
        catalog: &Catalog,
    ) -> Option<String> {
        described_tool(&tools_in(&self.visible_list(request, catalog).await))
    }

    /// The names of all tools that the caller may call, but for that which runs scripts.
    async fn visible_tools(&self, request: &ClientRequest<'_>, catalog: &Catalog) -> Vec<String> {
        let body = self.visible_list(request, catalog).await;
        let names = tools_in(&body).into_iter().filter_map(|tool| tool.get("name")?.as_text());
        names.map(|name| name.into_owned()).filter(|name| name != EXECUTE_TOOL_SCRIPT).collect()
    }
}

/// The tools in the response to a request for their list.
fn tools_in(body: &[u8]) -> Vec<Raw<'_>> {
    let tools = Envelope::parse(body).ok().and_then(|envelope| match envelope.message() {
        Message::Response { outcome: Outcome::Result(result), .. } => result.get(field(List::Tools)),
        _ => None,
    });
    tools.and_then(|tools| tools.items().ok()).unwrap_or_default()
}

impl Wanted {
    fn of(envelope: &Envelope<'_>, trees: &Trees) -> Result<Self, String> {
        let argument = |name| envelope.arguments().and_then(|arguments| arguments.get(name));
        let source = argument("script").and_then(Raw::as_text).map(Cow::into_owned);
        let source = source.ok_or("script must be a string: the script to run")?;
        let data = argument("data").filter(|data| data.kind() != Kind::Null);
        let data = match data {
            None => Map::new(),
            Some(data) if data.kind() == Kind::Object => {
                trees.tree(data.as_str()).map_err(|error| format!("data {error}"))?
            }
            Some(_) => return Err("data must be an object: the variables of the script".into()),
        };
        Ok(Self { source, data })
    }
}

/// The result of the tool, with what the script printed.
fn result(outcome: Result<String, ScriptError>, logs: &str) -> String {
    let is_error = outcome.is_err();
    let text = outcome.unwrap_or_else(|error| format!("The script failed: {error}"));
    let mut content = vec![json!({"type": "text", "text": text})];
    if !logs.is_empty() {
        content
            .push(json!({"type": "text", "text": format!("Script logs:\n{}", logs.trim_end_matches('\n'))}));
    }
    let mut result = json!({"content": content});
    if is_error {
        result["isError"] = true.into();
    }
    result.to_string()
}
