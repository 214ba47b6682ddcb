//! Tools that need input of the client first, as specified in 2026-07-28: they respond with what they need, and are called
//! again with it.

use rmcp::{ErrorData, RoleServer, model::*, service::RequestContext};
use serde_json::{Value, json};

use crate::{
    server::{Shared, of, result},
    tools::text,
};

/// Their names, and what they do.
pub(crate) const TOOLS: [(&str, &str); 8] = [
    ("test_input_required_result_elicitation", "Needs a name"),
    ("test_input_required_result_sampling", "Needs the client's model"),
    ("test_input_required_result_list_roots", "Needs the client's roots"),
    ("test_input_required_result_request_state", "Lets the client keep something for it"),
    ("test_input_required_result_multiple_inputs", "Needs several things at once"),
    ("test_input_required_result_multi_round", "Needs one thing after the other"),
    ("test_input_required_result_tampered_state", "Detects state that the client has changed"),
    ("test_input_required_result_capabilities", "Needs only what the client can"),
];

/// A form with these fields, all of which are texts and must be filled in.
pub(crate) fn form(message: &str, fields: &[&str]) -> Value {
    let properties: serde_json::Map<_, _> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties, "required": fields});
    json!({"mode": "form", "message": message, "requestedSchema": schema})
}

fn elicitation(message: &str, field: &str) -> Value {
    json!({"method": "elicitation/create", "params": form(message, &[field])})
}

fn sampling(prompt: &str) -> Value {
    let message = json!({"role": "user", "content": text(prompt)});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

pub(crate) fn tool(
    shared: &Shared,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let step = step(shared, request)?;
    let name = || elicitation("What is your name?", "name");
    let needed = match (request.name.as_ref(), step) {
        ("test_input_required_result_elicitation", _) => json!({"user_name": name()}),
        ("test_input_required_result_sampling", _) => {
            json!({"capital_question": sampling("What is the capital of France?")})
        }
        ("test_input_required_result_list_roots", _) => json!({"client_roots": roots()}),
        ("test_input_required_result_multiple_inputs", _) => {
            json!({"user_name": name(), "greeting": sampling("Generate a greeting"), "client_roots": roots()})
        }
        ("test_input_required_result_multi_round", 2) => {
            json!({"step2": elicitation("Step 2: What is your favorite color?", "color")})
        }
        ("test_input_required_result_multi_round", _) => {
            json!({"step1": elicitation("Step 1: What is your name?", "name")})
        }
        ("test_input_required_result_capabilities", _) => {
            let able = context.client_capabilities().unwrap_or_default();
            let mut needed = json!({});
            if able.elicitation.is_some() {
                needed["user_name"] = name();
            }
            if able.sampling.is_some() {
                needed["capital_question"] = sampling("What is the capital of France?");
            }
            needed
        }
        ("test_input_required_result_request_state" | "test_input_required_result_tampered_state", _) => {
            json!({"confirm": elicitation("Please confirm", "ok")})
        }
        (other, _) => return Err(ErrorData::invalid_params(format!("there is no tool {other}"), None)),
    };
    let rounds = if request.name.ends_with("multi_round") { 2 } else { 1 };
    if answered(&needed, request.input_responses.as_ref())? {
        if step == rounds {
            let given = json!(request.input_responses);
            let done: CallToolResult = result(json!({"content": [text(&format!("state-ok: {given}"))]}))?;
            return Ok(done.into());
        }
        return again(shared, request, context, step + 1);
    }
    required(shared, needed, step).map(Into::into)
}

/// The request of the next round.
fn again(
    shared: &Shared,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    step: u8,
) -> Result<CallToolResponse, ErrorData> {
    let mut next = request.clone();
    next.input_responses = None;
    next.request_state = Some(shared.seal.seal(&[step]));
    tool(shared, &next, context)
}

/// The round that the client is in, by what it keeps for the server. Changed state is rejected.
fn step(shared: &Shared, request: &CallToolRequestParams) -> Result<u8, ErrorData> {
    let Some(state) = &request.request_state else { return Ok(1) };
    let opened =
        shared.seal.open(state).map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    opened.first().copied().ok_or_else(|| ErrorData::invalid_params("the request state is empty", None))
}

/// Whether the client gave all that was needed. Additional input is ignored.
pub(crate) fn answered(needed: &Value, given: Option<&InputResponses>) -> Result<bool, ErrorData> {
    let Some(given) = given else { return Ok(false) };
    for key in needed.as_object().into_iter().flat_map(|needed| needed.keys()) {
        match given.get(key) {
            Some(Value::Object(_)) => {}
            Some(_) => return Err(ErrorData::invalid_params(format!("{key} is no answer"), None)),
            None => return Ok(false),
        }
    }
    Ok(true)
}

pub(crate) fn required(shared: &Shared, needed: Value, step: u8) -> Result<InputRequiredResult, ErrorData> {
    Ok(InputRequiredResult::new(Some(of(needed)?), Some(shared.seal.seal(&[step]))))
}
