//! The call that a call of call_tool is.

use std::borrow::Cow;

use bytes::Bytes;
use skep_gateway::message::Exchange;
use skep_mcp::{Edits, Envelope, Json, Kind, Method, Object, Raw, Rejection, header::MCP_PARAM_PREFIX};

use super::CALL_TOOL;

/// A tool and its arguments, as JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InnerCall<'a> {
    tool: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

/// The reason why a call of `call_tool` calls nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallToolError {
    #[error("tool_name is required: the name of a tool, as find_tool returned it")]
    NoName,
    #[error("parameters must be an object")]
    Parameters,
}

impl<'a> InnerCall<'a> {
    /// The call in the arguments of call_tool.
    pub(crate) fn of(arguments: Option<Raw<'a>>) -> Result<Self, CallToolError> {
        let arguments = arguments.ok_or(CallToolError::NoName)?;
        let parameters = arguments.get("parameters").filter(|parameters| parameters.kind() != Kind::Null);
        if parameters.is_some_and(|parameters| parameters.kind() != Kind::Object) {
            return Err(CallToolError::Parameters);
        }
        let name = |object: Raw<'a>| object.get("tool_name").and_then(Raw::as_text);
        let all = parameters.map_or(Cow::Borrowed("{}"), |parameters| Cow::Borrowed(parameters.as_str()));
        if let Some(tool) = name(arguments).filter(|name| !name.is_empty()) {
            return Ok(Self { tool, arguments: all });
        }
        // Some models write the name one level too deep.
        let tool = parameters.and_then(name).filter(|name| !name.is_empty()).ok_or(CallToolError::NoName)?;
        let mut others = Object::default();
        let entries = parameters.and_then(|parameters| parameters.entries().ok()).unwrap_or_default();
        for (key, value) in entries.into_iter().filter(|(key, _)| key.decoded() != "tool_name") {
            others.put(key.raw().as_str(), value.as_str());
        }
        Ok(Self { tool, arguments: others.json().into() })
    }

    /// Replaces a call of call_tool by the call of the inner tool. Returns whether the request was one.
    pub(crate) fn unwrap(exchange: &mut Exchange) -> Result<bool, Rejection> {
        let message = exchange.message.as_ref();
        let is_one =
            |method, target: Option<&str>| method == Some(Method::ToolsCall) && target == Some(CALL_TOOL);
        let Some(message) = message.filter(|message| is_one(message.method, message.target.as_deref()))
        else {
            return Ok(false);
        };
        let Some(body) = Self::body(&message.envelope()?)? else { return Ok(false) };
        exchange.replace_message(body)?;
        // They mirror parameters of call_tool, which has none that are mirrored.
        let mirrors: Vec<_> = exchange.headers.keys().cloned().collect();
        for name in mirrors.iter().filter(|name| name.as_str().starts_with(MCP_PARAM_PREFIX)) {
            exchange.headers.remove(name);
        }
        Ok(true)
    }

    fn body(envelope: &Envelope<'_>) -> Result<Option<Bytes>, Rejection> {
        let (Some(target), Some(arguments)) = (envelope.target(), envelope.arguments()) else {
            return Ok(None);
        };
        // The mistake is reported once the middlewares have seen the request.
        let Ok(inner) = InnerCall::of(Some(arguments)) else { return Ok(None) };
        let Some(with) = Raw::spelled(&inner.arguments) else { return Err(Rejection::Internal) };
        let edits = Edits::of(envelope.bytes())
            .replace(target.raw, Json::Text(&inner.tool))
            .replace(arguments, Json::Raw(with));
        edits.bytes().map(|body| Some(body.into())).map_err(|_| Rejection::Internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(arguments: &str) -> Result<(String, String), CallToolError> {
        let inner = InnerCall::of(Raw::spelled(arguments))?;
        Ok((inner.tool.into_owned(), inner.arguments.into_owned()))
    }

    #[test]
    fn parameters_keep_their_bytes() {
        let arguments = r#"{"tool_name":"a_pay","parameters":{"n":9007199254740993, "x":1e21}}"#;
        assert_eq!(inner(arguments), Ok(("a_pay".into(), r#"{"n":9007199254740993, "x":1e21}"#.into())));
        assert_eq!(inner(r#"{"tool_name":"a"}"#), Ok(("a".into(), "{}".into())));
        assert_eq!(inner(r#"{"tool_name":"a","parameters":null}"#), Ok(("a".into(), "{}".into())));
    }

    #[test]
    fn a_name_that_is_nested_too_deep_is_hoisted_out_of_the_parameters() {
        let nested = r#"{"parameters":{"to":"ann","tool_name":"mail","n":1e2}}"#;
        assert_eq!(inner(nested), Ok(("mail".into(), r#"{"to":"ann","n":1e2}"#.into())));
        let both = r#"{"tool_name":"rename","parameters":{"tool_name":"mail"}}"#;
        assert_eq!(inner(both), Ok(("rename".into(), r#"{"tool_name":"mail"}"#.into())));
    }

    #[test]
    fn a_mistake_has_its_field() {
        assert_eq!(inner("{}"), Err(CallToolError::NoName));
        assert_eq!(inner(r#"{"tool_name":"","parameters":{}}"#), Err(CallToolError::NoName));
        assert_eq!(inner(r#"{"tool_name":"a","parameters":[]}"#), Err(CallToolError::Parameters));
        assert_eq!(InnerCall::of(None), Err(CallToolError::NoName));
    }
}
