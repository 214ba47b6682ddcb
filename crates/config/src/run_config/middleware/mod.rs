//! Middlewares.

mod parameters;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error},
    ser::SerializeStruct,
};

use super::Oidc;
use crate::Json;

pub use parameters::*;

/// Declares [`Middleware`], with the name and the parameters of each type in one place for reading and writing.
macro_rules! middleware {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            parameters {
                $( $(#[$with_meta:meta])* $with:ident($parameters:ty) = $with_word:literal, )+
            }
            none {
                $( $(#[$without_meta:meta])* $without:ident = $without_word:literal => $written:expr, )+
            }
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$with_meta])* $with($parameters), )+
            $( $(#[$without_meta])* $without, )+
            /// An unknown type. A proxy must not start without it.
            Unknown(UnknownMiddleware),
        }

        impl $name {
            /// The name of its type.
            pub fn type_(&self) -> &str {
                match self {
                    $( Self::$with(_) => $with_word, )+
                    $( Self::$without => $without_word, )+
                    Self::Unknown(unknown) => &unknown.type_,
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = serializer.serialize_struct(stringify!($name), 2)?;
                object.serialize_field("type", self.type_())?;
                match self {
                    $( Self::$with(parameters) => object.serialize_field("parameters", parameters)?, )+
                    $( Self::$without => object.serialize_field("parameters", &$written)?, )+
                    Self::Unknown(unknown) => object.serialize_field("parameters", &unknown.parameters)?,
                }
                object.end()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let written = UnknownMiddleware::deserialize(deserializer)?;
                match written.type_.as_str() {
                    $( $with_word => written.known().map(Self::$with).map_err(D::Error::custom), )+
                    $( $without_word => Ok(Self::$without), )+
                    _ => Ok(Self::Unknown(written)),
                }
            }
        }
    };
}

middleware! {
    /// One step of the middleware chain. In the file: an object with `type` and `parameters`.
    pub enum Middleware {
        parameters {
            /// Rejects bodies that are too large.
            BodyLimit(BodyLimit) = "bodylimit",
            /// Rejects requests of other web origins.
            Origin(Origin) = "origin",
            /// Writes the audit log.
            Audit(AuditParameters) = "audit",
            /// Authenticates the caller.
            Auth(Auth) = "auth",
            /// Replaces the caller's token by that of an upstream provider.
            UpstreamSwap(UpstreamSwapParameters) = "upstreamswap",
            /// Exchanges the caller's token.
            TokenExchange(TokenExchangeParameters) = "tokenexchange",
            /// Omits tools from lists, and renames them there.
            ToolFilter(ToolFilter) = "tool-filter",
            /// Rejects calls of omitted tools, and undoes renames.
            ToolCallFilter(ToolFilter) = "tool-call-filter",
            /// Records traces and metrics.
            Telemetry(TelemetryParameters) = "telemetry",
            /// Enforces rate limits.
            RateLimit(RateLimit) = "ratelimit",
            /// Lets webhooks change the request.
            MutatingWebhook(Webhooks) = "mutating-webhook",
            /// Lets webhooks reject the request.
            ValidatingWebhook(Webhooks) = "validating-webhook",
            /// Authorizes the request.
            Authorization(Authorization) = "authorization",
            /// Signs the request for AWS.
            AwsSts(AwsStsParameters) = "awssts",
            /// Adds headers.
            HeaderForward(HeaderForwardParameters) = "header-forward",
        }
        none {
            /// Strips the caller's credentials.
            StripAuth = "strip-auth" => Empty {},
            /// Parses the MCP request, for the middlewares after it.
            McpParser = "mcp-parser" => Empty {},
            /// Counts calls of tools.
            UsageMetrics = "usagemetrics" => Empty {},
            /// Turns a panic into an error response.
            Recovery = "recovery" => (),
        }
    }
}

/// The parameters of a type that has none.
#[derive(Serialize)]
struct Empty {}

impl Middleware {
    /// How callers are authenticated by one of these, if they need tokens.
    pub fn oidc(all: &[Self]) -> Option<&Oidc> {
        all.iter().find_map(|middleware| match middleware {
            Self::Auth(auth) => auth.oidc_config.as_ref(),
            _ => None,
        })
    }
}

/// A middleware as it is in the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UnknownMiddleware {
    /// The name of its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// Its parameters.
    pub parameters: Option<Json>,
}

impl UnknownMiddleware {
    fn known<T: Default + DeserializeOwned>(&self) -> Result<T, String> {
        let Some(parameters) = &self.parameters else { return Ok(T::default()) };
        parameters.read().map_err(|error| format!("parameters of the middleware {}: {error}", self.type_))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(written: serde_json::Value) -> serde_json::Result<Middleware> {
        serde_json::from_str(&written.to_string())
    }

    #[test]
    fn a_known_type_has_typed_parameters() {
        let limit = json!({"type": "bodylimit", "parameters": {"max_bytes": 512, "new": true}});
        assert_eq!(read(limit).unwrap(), Middleware::BodyLimit(BodyLimit { max_bytes: 512 }));
    }

    #[test]
    fn the_type_may_come_last() {
        let text = r#"{"parameters": {"max_bytes": 512}, "type": "bodylimit"}"#;
        assert_eq!(serde_json::from_str::<Middleware>(text).unwrap().type_(), "bodylimit");
    }

    #[test]
    fn parameters_may_be_null_or_omitted() {
        for written in [json!({"type": "auth", "parameters": null}), json!({"type": "auth"})] {
            assert_eq!(read(written).unwrap(), Middleware::Auth(Auth::default()));
        }
    }

    #[test]
    fn types_without_parameters_are_written_with_empty_ones_or_null() {
        for (middleware, parameters) in [
            (Middleware::McpParser, json!({})),
            (Middleware::StripAuth, json!({})),
            (Middleware::UsageMetrics, json!({})),
            (Middleware::Recovery, json!(null)),
        ] {
            let written = serde_json::to_value(&middleware).unwrap();
            assert_eq!(written, json!({"type": middleware.type_(), "parameters": parameters}));
            assert_eq!(read(written).unwrap(), middleware);
        }
    }

    #[test]
    fn an_unknown_type_is_kept_with_its_parameters() {
        let text = r#"{"type":"teleport","parameters":{"to":"moon","by":1.50}}"#;
        let middleware: Middleware = serde_json::from_str(text).unwrap();
        assert!(matches!(middleware, Middleware::Unknown(_)));
        assert_eq!(middleware.type_(), "teleport");
        assert_eq!(serde_json::to_string(&middleware).unwrap(), text);
    }

    #[test]
    fn an_error_names_the_type() {
        let error = read(json!({"type": "ratelimit", "parameters": {"redis_db": "two"}})).unwrap_err();
        assert!(error.to_string().starts_with("parameters of the middleware ratelimit: "), "{error}");
    }
}
