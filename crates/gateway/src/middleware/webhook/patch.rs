//! What a webhook changes about a message (RFC 6902).

use json_patch::{Patch, PatchOperation, jsonptr::Pointer};
use serde_json::{Value, json};

use super::Answer;
use crate::limits;

/// What the paths of a patch start with: the payload's name for the message.
const MESSAGE: &str = "mcp_request";
/// What makes a message this one. An outer middleware may have let it pass for that.
const FIXED: [&str; 3] = ["jsonrpc", "id", "method"];

/// The message as the answer would have it, or nothing if that is as it is.
pub(crate) fn patched(message: &Value, answer: Answer) -> Result<Option<Value>, &'static str> {
    let Some(patch) = answer.patch.filter(|patch| !patch.is_null()) else { return Ok(None) };
    if answer.patch_type.as_deref() != Some("json_patch") {
        return Err("its patch_type is not json_patch");
    }
    let Patch(operations) = serde_json::from_value(patch).map_err(|_| "its patch is no JSON patch")?;
    if operations.len() > limits::PATCH_OPERATIONS {
        return Err("its patch has too many operations");
    }
    if !operations.iter().all(is_within) {
        return Err("its patch is not about what is within /mcp_request alone");
    }
    let mut document = json!({ MESSAGE: message });
    for operation in operations {
        json_patch::patch(&mut document, std::slice::from_ref(&operation))
            .map_err(|_| "its patch cannot be applied")?;
        // After each one: a copy of a copy doubles, and so does how deep it nests.
        if !fits(&document, limits::JUDGED_DEPTH + 1, &mut limits::JUDGED_BODY.clone()) {
            return Err("its patch makes the message too large");
        }
    }
    let changed = document[MESSAGE].take();
    if FIXED.iter().any(|key| changed.get(key) != message.get(key)) {
        return Err("its patch changes jsonrpc, id or method, which are the caller's");
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
    fn a_patch_changes_what_the_message_carries() {
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
    fn no_patch_and_one_without_effect_leave_the_message_alone() {
        let none = Answer { allowed: true, ..Answer::default() };
        assert_eq!(patched(&message(), none), Ok(None));
        assert_eq!(patched_by(json!([])), Ok(None));
        assert_eq!(patched_by(Value::Null), Ok(None));
        let same = json!([{"op": "replace", "path": "/mcp_request/id", "value": 7}]);
        assert_eq!(patched_by(same), Ok(None));
    }

    #[test]
    fn what_is_no_patch_of_the_message_is_refused() {
        let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
        let many = vec![json!({"op": "test", "path": "/mcp_request/id", "value": 7}); 1000];
        for (patch, why) in [
            (json!({}), "its patch is no JSON patch"),
            (json!([{"op": "explode", "path": "/mcp_request/id"}]), "its patch is no JSON patch"),
            (Value::from(many), "its patch has too many operations"),
            (replace("", json!({})), "its patch is not about what is within /mcp_request alone"),
            (replace("/mcp_request", json!({})), "its patch is not about what is within /mcp_request alone"),
            (
                replace("/principal/sub", json!("b")),
                "its patch is not about what is within /mcp_request alone",
            ),
            (
                replace("/mcp_requests/id", json!(1)),
                "its patch is not about what is within /mcp_request alone",
            ),
            (
                json!([{"op": "copy", "from": "/principal", "path": "/mcp_request/params/p"}]),
                "its patch is not about what is within /mcp_request alone",
            ),
            (replace("/mcp_request/params/none", json!(1)), "its patch cannot be applied"),
            (json!([{"op": "test", "path": "/mcp_request/id", "value": 8}]), "its patch cannot be applied"),
            (
                replace("/mcp_request/id", json!(8)),
                "its patch changes jsonrpc, id or method, which are the caller's",
            ),
            (
                json!([{"op": "remove", "path": "/mcp_request/id"}]),
                "its patch changes jsonrpc, id or method, which are the caller's",
            ),
            (
                replace("/mcp_request/method", json!("tools/list")),
                "its patch changes jsonrpc, id or method, which are the caller's",
            ),
        ] {
            assert_eq!(patched_by(patch.clone()), Err(why), "{patch:.200}");
        }
        let other = Answer { allowed: true, patch_type: Some("merge".into()), patch: Some(json!([])) };
        assert_eq!(patched(&message(), other), Err("its patch_type is not json_patch"));
    }

    #[test]
    fn a_patch_that_grows_without_end_is_stopped() {
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
