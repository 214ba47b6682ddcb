//! Requests as a backend gets them: with its own names, and in the form of its revision.

use serde_json::Value;
use skep_mcp::{CONNECT_INPUT, Era, Fault, Kind, Object, Raw, Revision};

/// The names in `_meta` that the protocol reserves. They are about one connection, so they end here.
const RESERVED: &str = "io.modelcontextprotocol/";
/// Those of them that are about the request itself.
const FORWARDED: [&str; 2] =
    ["io.modelcontextprotocol/related-task", "io.modelcontextprotocol/model-immediate-response"];

/// Who the virtual server is for its backends.
pub(crate) const CLIENT: &str = "toolhive-vmcp";
/// Its version: that of a release, or none in particular.
pub(crate) const VERSION: &str = match option_env!("SKEP_VERSION") {
    Some(version) => version,
    None => "dev",
};

/// What of a request is to be different for the backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rename<'a> {
    /// The field of the parameters that has the name.
    pub(crate) field: &'static str,
    /// The object in the parameters that has this field, if they do not have it themselves.
    pub(crate) within: Option<&'static str>,
    pub(crate) name: &'a str,
}

/// The request for the backend.
pub(crate) fn request(
    id: &str,
    method: &str,
    params: Option<Raw<'_>>,
    rename: Option<Rename<'_>>,
    form: &Form<'_>,
) -> Result<String, Fault> {
    let params = translated(method, params, rename, form)?;
    let method = Value::from(method);
    Ok(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#))
}

/// How a backend gets requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    pub(crate) era: Era,
    /// The capabilities of the client, as JSON.
    pub(crate) capabilities: &'a str,
    /// The lowest level of log messages that the client wants for this request, since 2026-07-28.
    pub(crate) log_level: Option<&'a str>,
}

fn translated(
    method: &str,
    params: Option<Raw<'_>>,
    rename: Option<Rename<'_>>,
    form: &Form<'_>,
) -> Result<String, Fault> {
    let entries = params.map(Raw::entries).transpose()?.unwrap_or_default();
    let mut object = Object::default();
    let mut meta = None;
    for (key, value) in &entries {
        match (&*key.decoded(), rename) {
            ("_meta", _) => meta = Some(*value),
            // Who does not declare tasks is to ignore this (MCP 2025-11-25, tasks).
            ("task", _) if method == "tools/call" => {}
            // Some clients send null for none, which is no object.
            ("arguments", _) if value.kind() == Kind::Null => {}
            ("inputResponses", _) => {
                // An older backend has requested none.
                let responses = without_own(*value)?;
                if form.era == Era::Modern && !responses.is_empty() {
                    object.put(key.raw().as_str(), &responses.json());
                }
            }
            (name, Some(Rename { field, within: None, name: original })) if name == field => {
                object.put(key.raw().as_str(), &Value::from(original).to_string());
            }
            (name, Some(Rename { field, within: Some(outer), name: original })) if name == outer => {
                object.put(key.raw().as_str(), &renamed(*value, field, original)?);
            }
            _ => object.put(key.raw().as_str(), value.as_str()),
        }
    }
    let has_arguments = entries.iter().any(|(key, _)| key.decoded() == "arguments");
    if form.era == Era::Modern && method == "prompts/get" && !has_arguments {
        object.put("\"arguments\"", "{}");
    }
    let meta = with_own_meta(meta, form)?;
    if !meta.is_empty() {
        object.put("\"_meta\"", &meta.json());
    }
    Ok(object.json())
}

/// The input of the client, without what the virtual server has requested itself.
fn without_own(responses: Raw<'_>) -> Result<Object, Fault> {
    let mut object = Object::default();
    for (key, value) in responses.entries()? {
        if key.decoded() != CONNECT_INPUT {
            object.put(key.raw().as_str(), value.as_str());
        }
    }
    Ok(object)
}

fn renamed(value: Raw<'_>, field: &str, name: &str) -> Result<String, Fault> {
    let mut object = Object::default();
    for (key, value) in value.entries()? {
        match &*key.decoded() {
            key_name if key_name == field => object.put(key.raw().as_str(), &Value::from(name).to_string()),
            _ => object.put(key.raw().as_str(), value.as_str()),
        }
    }
    Ok(object.json())
}

/// The `_meta` of a request, without what was for the virtual server, and with what is for the backend.
fn with_own_meta(meta: Option<Raw<'_>>, form: &Form<'_>) -> Result<Object, Fault> {
    let mut object = unreserved(meta)?;
    if form.era == Era::Modern {
        let version = Revision::V2026_07_28.name();
        object.put(&format!("\"{RESERVED}protocolVersion\""), &Value::from(version).to_string());
        let info = format!(r#"{{"name":"{CLIENT}","version":"{VERSION}"}}"#);
        object.put(&format!("\"{RESERVED}clientInfo\""), &info);
        object.put(&format!("\"{RESERVED}clientCapabilities\""), form.capabilities);
        if let Some(level) = form.log_level {
            object.put(&format!("\"{RESERVED}logLevel\""), &Value::from(level).to_string());
        }
    }
    Ok(object)
}

/// The members of a `_meta` that are not about one connection.
pub(crate) fn unreserved(meta: Option<Raw<'_>>) -> Result<Object, Fault> {
    let mut object = Object::default();
    for (key, value) in meta.map(Raw::entries).transpose()?.unwrap_or_default() {
        let name = key.decoded();
        if !name.starts_with(RESERVED) || FORWARDED.contains(&&*name) {
            object.put(key.raw().as_str(), value.as_str());
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEGACY: Form<'_> = Form { era: Era::Legacy, capabilities: "{}", log_level: None };

    fn sent(params: &str, rename: Option<Rename<'_>>, form: &Form<'_>) -> String {
        request("7", "tools/call", Raw::spelled(params), rename, form).unwrap()
    }

    #[test]
    fn the_name_changes_and_nothing_else() {
        let rename = Rename { field: "name", within: None, name: "echo" };
        let params =
            r#"{"name":"a_echo","arguments":{"n":9007199254740993, "x":1e21},"_meta":{"progressToken":1}}"#;
        assert_eq!(
            sent(params, Some(rename), &LEGACY),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"n":9007199254740993, "x":1e21},"_meta":{"progressToken":1}}}"#
        );
        let reference = Rename { field: "name", within: Some("ref"), name: "greet" };
        let params = r#"{"ref":{"type":"ref/prompt","name":"a_greet"},"argument":{"name":"who"}}"#;
        assert!(
            sent(params, Some(reference), &LEGACY)
                .contains(r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who"}}"#)
        );
    }

    #[test]
    fn input_that_the_backend_has_not_requested_ends_here() {
        let modern = Form { era: Era::Modern, capabilities: "{}", log_level: None };
        let own = format!(r#""{CONNECT_INPUT}":{{"action":"accept"}}"#);
        let both = format!(r#""a": {{"x":1}},{own}"#);
        for (responses, forwarded) in [(own, None), (both, Some(r#""inputResponses":{"a":{"x":1}}"#))] {
            let params = format!(r#"{{"name":"n","inputResponses":{{{responses}}}}}"#);
            let (old, new) = (sent(&params, None, &LEGACY), sent(&params, None, &modern));
            assert!(!old.contains("inputResponses"), "{old}");
            match forwarded {
                Some(forwarded) => assert!(new.contains(forwarded), "{new}"),
                None => assert!(!new.contains("inputResponses"), "{new}"),
            }
        }
    }

    #[test]
    fn what_is_reserved_in_meta_ends_here_and_a_modern_backend_gets_its_own() {
        let params = r#"{"arguments":null,"_meta":{"io.modelcontextprotocol/clientInfo":{},"kit/a":1}}"#;
        assert!(sent(params, None, &LEGACY).ends_with(r#""params":{"_meta":{"kit/a":1}}}"#));
        let modern = Form { era: Era::Modern, capabilities: r#"{"roots":{}}"#, log_level: None };
        assert_eq!(
            sent(params, None, &modern),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"kit/a":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"toolhive-vmcp","version":"dev"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#
        );
    }
}
