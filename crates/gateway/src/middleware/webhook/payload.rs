//! The payload that webhooks receive about a request.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use skep_config::run_config::Webhooks;
use skep_mcp::Rejection;

use crate::{identity::Identity, message::Exchange};

const VERSION: &str = "v0.1.0";

/// The part of it about the server, the same each time.
pub(crate) struct Context {
    server: String,
    transport: &'static str,
}

impl Context {
    pub(crate) fn new(parameters: &Webhooks) -> Self {
        Self { server: parameters.server_name.clone(), transport: parameters.transport.as_str() }
    }

    /// The payload about a request, under an id. The message in it is the received one, byte for byte.
    pub(crate) fn payload(&self, exchange: &Exchange, uid: uuid::Uuid) -> Result<Bytes, Rejection> {
        let message = std::str::from_utf8(&exchange.body).map_err(|_| Rejection::Internal)?;
        let principal = exchange.caller.identity.as_deref().map_or(Value::Null, principal);
        let (uid, timestamp) = (uid.to_string(), Timestamp::now().to_string());
        let context = json!({
            "server_name": self.server, "source_ip": exchange.peer.to_string(), "transport": self.transport,
        });
        let payload = format!(
            r#"{{"version":"{VERSION}","uid":"{uid}","timestamp":"{timestamp}","principal":{principal},"mcp_request":{},"context":{context}}}"#,
            message.trim_ascii()
        );
        Ok(Bytes::from(payload))
    }
}

/// The caller: everything that is known of it but its token.
fn principal(identity: &Identity) -> Value {
    let mut principal = Map::from_iter([("sub".to_owned(), Value::from(identity.subject.as_str()))]);
    for name in ["name", "email"] {
        let claim = identity.claims.get(name).filter(|claim| claim.is_string());
        principal.extend(claim.map(|claim| (name.to_owned(), claim.clone())));
    }
    principal.insert("claims".into(), Value::Object(identity.claims.clone()));
    let delegation = identity.delegation.description(usize::MAX);
    principal.extend(delegation.map(|delegation| ("delegation".to_owned(), delegation)));
    principal.into()
}
