//! The result of a backend, as the client gets it: byte for byte, but for what belongs to one connection.

use skep_gateway::message::{Exchange, Origin};
use skep_mcp::{Era, Kind, Method, Object, Raw};

use super::rpc::{Cacheable, RpcError, complete, needing_input};
use crate::backend::{BackendError, ResultType, unreserved};

/// What a result of 2026-07-28 has beside its content.
const OF_CONNECTION: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The recipient of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// A client.
    Client,
    /// A tool of the virtual server, which made the call.
    Tool,
}

impl Recipient {
    /// The recipient of the result of a request.
    pub(super) fn of(exchange: &Exchange) -> Self {
        if matches!(exchange.origin, Origin::Part(_)) { Self::Tool } else { Self::Client }
    }
}

/// The result for the recipient, whose request is of this era.
pub(super) fn translated(
    result: Raw<'_>,
    method: Method,
    era: Era,
    recipient: Recipient,
    server: &str,
) -> Result<String, BackendError> {
    // Older clients reject a result whose structure is no object. Scripts and workflows can use it.
    let needs_object = era == Era::Legacy && recipient == Recipient::Client;
    let is_tool = method == Method::ToolsCall;
    let entries = match result.kind() {
        Kind::Object => result.entries().map_err(|_| BackendError::Result("is malformed"))?,
        // Some servers have nothing to return.
        Kind::Null if is_tool => Vec::new(),
        _ => return Err(BackendError::Result("is malformed")),
    };
    let needs_input = ResultType::of(result)? == ResultType::InputRequired;
    let mut object = Object::default();
    let (mut meta, mut has_content) = (None, false);
    for (key, value) in entries {
        match &*key.decoded() {
            "_meta" => meta = Some(value),
            "content" if is_tool && value.kind() != Kind::Array => {
                return Err(BackendError::Result("has content that is no list"));
            }
            "structuredContent" if is_tool && needs_object && value.kind() != Kind::Object => {}
            name if OF_CONNECTION.contains(&name) => {}
            name => {
                has_content |= name == "content";
                object.put(key.raw().as_str(), value.as_str());
            }
        }
    }
    if is_tool && !has_content && !needs_input {
        object.put("\"content\"", "[]");
    }
    let meta = unreserved(meta).map_err(|_| BackendError::Result("is malformed"))?;
    match era {
        Era::Modern if needs_input => needing_input(&mut object, server, meta),
        Era::Modern => {
            let cacheable = if method == Method::ResourcesRead { Cacheable::Yes } else { Cacheable::No };
            complete(&mut object, server, meta, cacheable);
        }
        Era::Legacy if !meta.is_empty() => object.put("\"_meta\"", &meta.json()),
        Era::Legacy => {}
    }
    Ok(object.json())
}

/// What a client gets for a request that failed at a backend. Before 2026-07-28, a tool that fails has a result.
pub(super) fn failure(
    method: Method,
    era: Era,
    backend: &str,
    error: &BackendError,
) -> Result<String, RpcError> {
    if era == Era::Legacy && method == Method::ToolsCall {
        return Ok(tool_error(&format!("backend {backend}: {error}")));
    }
    Err(RpcError::of_backend(backend, error))
}

/// The result of a tool that failed, with the reason.
pub(super) fn tool_error(message: &str) -> String {
    let text = serde_json::Value::from(message);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(result: &str) -> Result<String, BackendError> {
        translated(Raw::spelled(result).unwrap(), Method::ToolsCall, Era::Legacy, Recipient::Client, "kit")
    }

    fn modern(result: &str) -> Result<String, BackendError> {
        let result = Raw::spelled(result).unwrap();
        translated(result, Method::ToolsCall, Era::Modern, Recipient::Client, "kit")
    }

    #[test]
    fn a_result_keeps_its_bytes_but_for_what_belongs_to_the_connection() {
        let result = r#"{"content":[{"type":"new","x":1e2}],"other":[],"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{}}}"#;
        assert_eq!(
            legacy(result).unwrap(),
            r#"{"content":[{"type":"new","x":1e2}],"other":[],"_meta":{"a":1}}"#
        );
        let modern = modern(result).unwrap();
        assert_eq!(
            modern,
            r#"{"content":[{"type":"new","x":1e2}],"other":[],"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"kit","version":"dev"}}}"#
        );
    }

    #[test]
    fn a_result_that_needs_input_is_passed_on_to_a_client_that_knows_it() {
        let result = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}"#;
        let modern = modern(result).unwrap();
        assert_eq!(
            modern,
            r#"{"inputRequests":{"a":{"method":"roots/list"}},"requestState":"s","resultType":"input_required","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"kit","version":"dev"}}}"#
        );
    }

    #[test]
    fn what_clients_could_not_read_is_completed_or_rejected() {
        assert_eq!(legacy("{}").unwrap(), r#"{"content":[]}"#);
        assert_eq!(legacy("null").unwrap(), r#"{"content":[]}"#);
        let list = r#"{"content":[],"structuredContent":[1]}"#;
        assert_eq!(legacy(list).unwrap(), r#"{"content":[]}"#);
        assert!(modern(list).unwrap().starts_with(list.trim_end_matches('}')));
        let of_own_tool = Raw::spelled(list).unwrap();
        let of_own_tool =
            translated(of_own_tool, Method::ToolsCall, Era::Legacy, Recipient::Tool, "kit").unwrap();
        assert_eq!(of_own_tool, list);
        assert!(legacy(r#"{"content":"text"}"#).is_err() && legacy("[]").is_err());
    }
}
