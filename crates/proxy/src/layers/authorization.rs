//! What a caller may do. Once there are policies, what none of them permits is refused.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use skep_authz::{
    Action, Authorizer, Decision, Document, Feature, Hints, Principal, Resource, Treatment, treatment,
};
use skep_config::run_config;
use skep_mcp::{Envelope, Item, List, Refusal, Verdict, filtered};
use tracing::info;

use crate::{
    ConfigError, answer::Refused, call::arguments, exchange::Exchange, filter::MessageFilter,
    identity::Identity,
};

/// The tools whose hints are remembered. A server with more loses the hints of some.
const REMEMBERED_TOOLS: usize = 10_000;

/// The policies of a server.
pub(crate) struct Authorization(Arc<Policies>);

struct Policies {
    authorizer: Authorizer,
    /// What the server says of its tools, as of the last list: policies may go by it when a tool is called.
    hints: Mutex<HashMap<String, Hints>>,
}

impl Authorization {
    pub(super) fn new(parameters: &run_config::Authorization, server: &str) -> Result<Self, ConfigError> {
        let wrong = |error: &dyn std::fmt::Display| ConfigError::new(format!("authorization: {error}"));
        let Some(document) = &parameters.config_data else {
            return Err(wrong(&"config_data is missing"));
        };
        let document: Value = document.read().map_err(|error| wrong(&error))?;
        match Document::read(&document).map_err(|error| wrong(&error))? {
            Document::Cedar(cedar) => {
                let authorizer = Authorizer::new(&cedar, server).map_err(|error| wrong(&error))?;
                Ok(Self(Arc::new(Policies { authorizer, hints: Mutex::default() })))
            }
            Document::Pdp(_) => Err(wrong(&"type httpv1 is not supported by this version")),
        }
    }

    pub(super) fn request(&self, exchange: &Exchange) -> Result<(), Refused> {
        let Some(call) = &exchange.call else { return Ok(()) };
        // An answer to what the server asked: nothing is asked of the server.
        if call.method.is_none() {
            return Ok(());
        }
        let action = match treatment(&call.method_name) {
            Treatment::Always | Treatment::FilterList(_) => return Ok(()),
            Treatment::Check(action) => action,
            Treatment::Deny => return Err(exchange.refused(&Refusal::Denied)),
        };
        let (Some(target), Some(identity)) = (&call.target, &exchange.identity) else {
            return Err(exchange.refused(&Refusal::Denied));
        };
        let arguments = match arguments(&exchange.body) {
            Ok(arguments) => arguments,
            Err(fault) => return Err(exchange.refused(&Refusal::Message(fault))),
        };
        let hints = self.0.hints.lock().unwrap_or_else(PoisonError::into_inner).get(target).cloned();
        let resource = Resource { hints: hints.unwrap_or_default(), ..Resource::new(target) };
        let arguments = arguments.as_ref().and_then(Value::as_object);
        match self.0.authorizer.decide(&principal(identity), action, &resource, arguments) {
            Decision::Allow => Ok(()),
            Decision::Deny(denial) => {
                info!(method = call.method_name, %denial, "denied");
                Err(exchange.refused(&Refusal::Denied))
            }
        }
    }

    pub(super) fn filter(&self, exchange: &Exchange) -> Option<Box<dyn MessageFilter>> {
        let identity = exchange.identity.clone();
        Some(Box::new(Lists { policies: self.0.clone(), identity }))
    }
}

fn principal(identity: &Identity) -> Principal<'_> {
    Principal { subject: &identity.subject, claims: &identity.claims }
}

/// Leaves out of lists what the caller may not use.
struct Lists {
    policies: Arc<Policies>,
    identity: Option<Arc<Identity>>,
}

impl MessageFilter for Lists {
    /// Whatever was asked for: a server may answer what nobody asked.
    fn message<'a>(&self, message: &'a [u8], envelope: &Envelope<'a>) -> Result<Cow<'a, [u8]>, Refusal> {
        let mut seen = Cow::Borrowed(message);
        for list in List::found_in(envelope).map_err(|_| Refusal::Internal)? {
            let Some(action) = action(list) else { continue };
            let next = match &seen {
                Cow::Borrowed(message) => self.list(message, list, action)?,
                Cow::Owned(message) => Cow::Owned(self.list(message, list, action)?.into_owned()),
            };
            seen = next;
        }
        Ok(seen)
    }
}

impl Lists {
    fn list<'a>(&self, message: &'a [u8], list: List, action: Action) -> Result<Cow<'a, [u8]>, Refusal> {
        let Some(identity) = &self.identity else { return Err(Refusal::Denied) };
        let principal = principal(identity);
        let subject = self.policies.authorizer.subject(&principal);
        let mut remembered = HashMap::new();
        let seen = filtered(message, list, |item| {
            let name = item.name();
            let hints = hints(item);
            let resource = Resource { hints, ..Resource::new(&name) };
            let may = subject.may(action, &resource, None) == Decision::Allow;
            if list == List::Tools && remembered.len() < REMEMBERED_TOOLS {
                remembered.insert(name.clone().into_owned(), hints);
            }
            if may { Verdict::Keep } else { Verdict::Drop }
        });
        let seen = seen.map_err(|_| Refusal::Internal)?;
        if list == List::Tools {
            let mut known = self.policies.hints.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() + remembered.len() > REMEMBERED_TOOLS {
                known.clear();
            }
            known.extend(remembered);
        }
        Ok(seen)
    }
}

/// What a caller must be allowed to do with an item to see it. Templates are shown to all, see [`treatment`].
fn action(list: List) -> Option<Action> {
    match list {
        List::Tools => Some(Feature::Tool.action()),
        List::Prompts => Some(Feature::Prompt.action()),
        List::Resources => Some(Feature::Resource.action()),
        List::ResourceTemplates => None,
    }
}

fn hints(item: &Item<'_>) -> Hints {
    let annotations = item.annotations().and_then(|raw| serde_json::from_str::<Value>(raw.as_str()).ok());
    let hint = |key: &str| annotations.as_ref().and_then(|annotations| annotations[key].as_bool());
    Hints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}
