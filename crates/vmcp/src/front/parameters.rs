//! Parameters of tools that are also sent in headers, since 2026-07-28.

use http::{HeaderMap, HeaderName, HeaderValue};
use skep_mcp::{
    Era, Kind, Raw,
    header::{MCP_PARAM_PREFIX, encoded_name},
};

use skep_gateway::message::Origin;

use super::ClientRequest;
use crate::backend::Link;

/// How deep a schema is searched for them.
const DEPTH: usize = 8;

/// The headers of a request: those that its client sent, also if some are missing, or, as older clients and tools of the
/// virtual server itself send none, those that the tool has.
pub(super) fn parameter_headers(request: &ClientRequest<'_>, tool: Option<&str>, link: &Link) -> HeaderMap {
    if link.revision.era() == Era::Legacy {
        return HeaderMap::new();
    }
    if request.era == Era::Modern && matches!(request.exchange.origin, Origin::Client) {
        let all = request.exchange.headers.iter();
        let sent = all.filter(|(name, _)| name.as_str().starts_with(MCP_PARAM_PREFIX));
        return sent.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    let schema = tool.and_then(Raw::spelled).and_then(|tool| tool.get("inputSchema"));
    let mut headers = HeaderMap::new();
    if let (Some(schema), Some(arguments)) = (schema, request.envelope.arguments()) {
        mirror(schema, arguments, DEPTH, &mut headers);
    }
    headers
}

/// Adds the header of every argument whose schema names one.
fn mirror(schema: Raw<'_>, arguments: Raw<'_>, depth: usize, headers: &mut HeaderMap) {
    let properties = schema.get("properties").and_then(|properties| properties.entries().ok());
    for (key, property) in properties.unwrap_or_default() {
        let Some(argument) = arguments.get(&key.decoded()) else { continue };
        if argument.kind() == Kind::Object && depth > 0 {
            mirror(property, argument, depth - 1, headers);
        }
        let name = property.get("x-mcp-header").and_then(Raw::as_text);
        let value = match argument.kind() {
            Kind::Text => argument.as_text().map(|text| encoded_name(&text).into_owned()),
            Kind::Number | Kind::Bool => Some(argument.as_str().to_owned()),
            Kind::Null | Kind::Array | Kind::Object => None,
        };
        let header = name.and_then(|name| HeaderName::try_from(format!("{MCP_PARAM_PREFIX}{name}")).ok());
        if let (Some(header), Some(Ok(value))) = (header, value.map(HeaderValue::try_from)) {
            headers.insert(header, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_mirrored_as_its_schema_says() {
        let schema = r#"{"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "count":{"type":"integer","x-mcp-header":"Count"},
            "plain":{"type":"string"},
            "where":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}}
        }}"#;
        let arguments = r#"{"region":"eu","count":3,"plain":"x","where":{"city":"Z\u00fcrich"}}"#;
        let mut headers = HeaderMap::new();
        mirror(Raw::spelled(schema).unwrap(), Raw::spelled(arguments).unwrap(), DEPTH, &mut headers);
        let value = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(headers.len(), 3);
        assert_eq!((value("mcp-param-region"), value("mcp-param-count")), ("eu".into(), "3".into()));
        assert_eq!(value("mcp-param-city"), "=?base64?WsO8cmljaA==?=");
    }
}
