//! The patch of a webhook (RFC 6902).

use json_patch::{Patch, PatchOperation, jsonptr::Pointer};
use serde_json::{Value, json};

use super::Answer;
use crate::limits;

/// What the paths of a patch start with: the payload's name for the message.
const MESSAGE: &str = "mcp_request";
/// The keys that a patch may not change: outer middlewares have decided by them.
const FIXED: [&str; 3] = ["jsonrpc", "id", "method"];

/// The patched message, or nothing if the patch changes nothing.
pub(crate) fn patched(message: &Value, answer: Answer) -> Result<Option<Value>, &'static str> {
    let Some(patch) = answer.patch.filter(|patch| !patch.is_null()) else { return Ok(None) };
    if answer.patch_type.as_deref() != Some("json_patch") {
        return Err("its patch_type is not json_patch");
    }
    let Patch(operations) = serde_json::from_value(patch).map_err(|_| "its patch is not a JSON patch")?;
    if operations.len() > limits::PATCH_OPERATIONS {
        return Err("its patch has too many operations");
    }
    if !operations.iter().all(is_within) {
        return Err("its patch has a path outside of /mcp_request");
    }
    let mut document = json!({ MESSAGE: message });
    for operation in operations {
        json_patch::patch(&mut document, std::slice::from_ref(&operation))
            .map_err(|_| "its patch cannot be applied")?;
        // After each one: a copy of a copy doubles, and so does how deep it nests.
        if !fits(&document, limits::WEBHOOK_DEPTH + 1, &mut limits::WEBHOOK_BODY.clone()) {
            return Err("its patch makes the message too large");
        }
    }
    let changed = document[MESSAGE].take();
    if FIXED.iter().any(|key| changed.get(key) != message.get(key)) {
        return Err("its patch changes jsonrpc, id or method, which is not allowed");
    }
    Ok((changed != *message).then_some(changed))
}

fn is_within(operation: &PatchOperation) -> bool {
    let within = |pointer: &Pointer| {
        let mut tokens = pointer.tokens();
        tokens.next().is_some_and(|token| token.decoded() == MESSAGE) && tokens.next().is_some()
    };
    let from = match operation {
        PatchOperation::Move(operation) => Some(&operation.from),
        PatchOperation::Copy(operation) => Some(&operation.from),
        _ => None,
    };
    within(operation.path()) && from.is_none_or(|from| within(from))
}

/// Whether a value nests no deeper, and takes no more room, than it may.
fn fits(value: &Value, depth: u32, room: &mut usize) -> bool {
    let size = match value {
        Value::String(text) => text.len() + 2,
        _ => 1,
    };
    let Some(left) = room.checked_sub(size) else { return false };
    *room = left;
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits(item, depth - 1, room)),
        Value::Object(members) => {
            depth > 0
                && members.iter().all(|(key, member)| {
                    let left = room.checked_sub(key.len() + 3);
                    *room = left.unwrap_or_default();
                    left.is_some() && fits(member, depth - 1, room)
                })
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "a", "arguments": {"x": [1]}}})
    }

    fn patched_by(patch: Value) -> Result<Option<Value>, &'static str> {
        let answer = Answer { allowed: true, patch_type: Some("json_patch".into()), patch: Some(patch) };
        patched(&message(), answer)
    }

    #[test]
    fn a_patch_changes_the_message() {
        let changed = patched_by(json!([
            {"op": "test", "path": "/mcp_request/method", "value": "tools/call"},
            {"op": "add", "path": "/mcp_request/params/arguments/x/-", "value": 2},
            {"op": "copy", "from": "/mcp_request/params/name", "path": "/mcp_request/params/_meta"},
        ]));
        let mut expected = message();
        expected["params"]["arguments"]["x"] = json!([1, 2]);
        expected["params"]["_meta"] = json!("a");
        assert_eq!(changed, Ok(Some(expected)));
    }

    #[test]
    fn no_patch_and_one_without_effect_leave_the_message_unchanged() {
        let none = Answer { allowed: true, ..Answer::default() };
        assert_eq!(patched(&message(), none), Ok(None));
        assert_eq!(patched_by(json!([])), Ok(None));
        assert_eq!(patched_by(Value::Null), Ok(None));
        let same = json!([{"op": "replace", "path": "/mcp_request/id", "value": 7}]);
        assert_eq!(patched_by(same), Ok(None));
    }

    #[test]
    fn an_invalid_patch_is_rejected() {
        let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
        let many = vec![json!({"op": "test", "path": "/mcp_request/id", "value": 7}); 1000];
        for (patch, error) in [
            (json!({}), "its patch is not a JSON patch"),
            (json!([{"op": "explode", "path": "/mcp_request/id"}]), "its patch is not a JSON patch"),
            (Value::from(many), "its patch has too many operations"),
            (replace("", json!({})), "its patch has a path outside of /mcp_request"),
            (replace("/mcp_request", json!({})), "its patch has a path outside of /mcp_request"),
            (replace("/principal/sub", json!("b")), "its patch has a path outside of /mcp_request"),
            (replace("/mcp_requests/id", json!(1)), "its patch has a path outside of /mcp_request"),
            (
                json!([{"op": "copy", "from": "/principal", "path": "/mcp_request/params/p"}]),
                "its patch has a path outside of /mcp_request",
            ),
            (replace("/mcp_request/params/none", json!(1)), "its patch cannot be applied"),
            (json!([{"op": "test", "path": "/mcp_request/id", "value": 8}]), "its patch cannot be applied"),
            (
                replace("/mcp_request/id", json!(8)),
                "its patch changes jsonrpc, id or method, which is not allowed",
            ),
            (
                json!([{"op": "remove", "path": "/mcp_request/id"}]),
                "its patch changes jsonrpc, id or method, which is not allowed",
            ),
            (
                replace("/mcp_request/method", json!("tools/list")),
                "its patch changes jsonrpc, id or method, which is not allowed",
            ),
        ] {
            assert_eq!(patched_by(patch.clone()), Err(error), "{patch:.200}");
        }
        let other = Answer { allowed: true, patch_type: Some("merge".into()), patch: Some(json!([])) };
        assert_eq!(patched(&message(), other), Err("its patch_type is not json_patch"));
    }

    #[test]
    fn a_patch_that_makes_the_message_too_large_is_rejected() {
        let into = |path: &str| json!({"op": "copy", "from": "/mcp_request/params", "path": path});
        let wider = (0..60).map(|number| into(&format!("/mcp_request/params/{number}")));
        assert_eq!(patched_by(wider.collect()), Err("its patch makes the message too large"));
        let mut path = "/mcp_request/params".to_owned();
        let deeper = (0..60).map(|_| {
            path.push_str("/arguments");
            into(&path)
        });
        assert_eq!(patched_by(deeper.collect()), Err("its patch makes the message too large"));
    }
}
