//! The result of a backend, as the client gets it: byte for byte, but for what belongs to one connection.

use skep_mcp::{Era, Kind, Method, Raw};

use super::rpc::{Cacheable, RpcError, complete};
use crate::backend::{BackendError, Object, unreserved};

/// What a result of 2026-07-28 has beside its content.
const OF_CONNECTION: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The result for a client of this era, or why it is none.
pub(super) fn translated(
    result: Raw<'_>,
    method: Method,
    era: Era,
    server: &str,
) -> Result<String, &'static str> {
    const MALFORMED: &str = "its result is malformed";
    let is_tool = method == Method::ToolsCall;
    let entries = match result.kind() {
        Kind::Object => result.entries().map_err(|_| MALFORMED)?,
        // Some servers have nothing to return.
        Kind::Null if is_tool => Vec::new(),
        _ => return Err(MALFORMED),
    };
    let mut object = Object::default();
    let mut meta = None;
    let mut has_content = false;
    for (key, value) in entries {
        match &*key.decoded() {
            "_meta" => meta = Some(value),
            "content" if is_tool && value.kind() != Kind::Array => {
                return Err("the content of its result is no list");
            }
            // Clients reject a result whose structure is no object.
            "structuredContent" if is_tool && value.kind() != Kind::Object => {}
            "resultType" if value.as_text().is_none_or(|kind| kind != "complete") => {
                return Err("it needs further input of the client, which cannot be passed on");
            }
            name if OF_CONNECTION.contains(&name) => {}
            name => {
                has_content |= name == "content";
                object.put(key.raw().as_str(), value.as_str());
            }
        }
    }
    if is_tool && !has_content {
        object.put("\"content\"", "[]");
    }
    let meta = unreserved(meta).map_err(|_| MALFORMED)?;
    match era {
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
    if method != Method::ToolsCall {
        return Err(RpcError::of_backend(backend, error));
    }
    let message = format!("backend {backend}: {error}");
    if era == Era::Legacy { Ok(tool_error(&message)) } else { Err(RpcError::internal(message)) }
}

/// The result of a tool that failed, with the reason.
pub(super) fn tool_error(message: &str) -> String {
    let text = serde_json::Value::from(message);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(result: &str) -> Result<String, &'static str> {
        translated(Raw::spelled(result).unwrap(), Method::ToolsCall, Era::Legacy, "kit")
    }

    #[test]
    fn a_result_keeps_its_bytes_but_for_what_belongs_to_the_connection() {
        let result = r#"{"content":[{"type":"new","x":1e2}],"other":[],"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{}}}"#;
        assert_eq!(
            legacy(result).unwrap(),
            r#"{"content":[{"type":"new","x":1e2}],"other":[],"_meta":{"a":1}}"#
        );
        let modern =
            translated(Raw::spelled(result).unwrap(), Method::ToolsCall, Era::Modern, "kit").unwrap();
        assert_eq!(
            modern,
            r#"{"content":[{"type":"new","x":1e2}],"other":[],"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"kit","version":"dev"}}}"#
        );
    }

    /// It would look like a result without content.
    #[test]
    fn a_result_that_needs_further_input_is_an_error() {
        assert!(legacy(r#"{"resultType":"input_required","inputRequests":{}}"#).is_err());
    }

    #[test]
    fn what_clients_could_not_read_is_completed_or_rejected() {
        assert_eq!(legacy("{}").unwrap(), r#"{"content":[]}"#);
        assert_eq!(legacy("null").unwrap(), r#"{"content":[]}"#);
        assert_eq!(legacy(r#"{"content":[],"structuredContent":[1]}"#).unwrap(), r#"{"content":[]}"#);
        assert!(legacy(r#"{"content":"text"}"#).is_err() && legacy("[]").is_err());
    }
}
