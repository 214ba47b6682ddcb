//! The envelope of a message: its kind, its id, its method and its target.

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value};

use crate::{
    Fault, Id, Meta, Method, Target, TargetKind,
    json::{Field, Fields, Kind, Raw, Scanner, Text},
    params::{self, Params},
};

/// How many objects and arrays may be nested in a message, its own included.
pub const DEPTH: u32 = 64;

/// How many resources are read of a request that subscribes to some.
const SUBSCRIPTIONS: usize = 10_000;

/// A JSON-RPC message whose bytes were checked once, from the first to the last, and of which only the envelope was
/// read.
#[derive(Clone, Copy)]
pub struct Envelope<'a> {
    bytes: &'a [u8],
    message: Message<'a>,
    method: Option<Method>,
    params: Params<'a>,
}

/// The three kinds of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Expects a response.
    Request {
        /// The id that the response will have.
        id: Id<'a>,
        /// The name of the method.
        method: Text<'a>,
    },
    /// Expects none. A policy must still consider the method: a server may act on a `tools/call` that has no id.
    Notification {
        /// The name of the method.
        method: Text<'a>,
    },
    /// A response.
    Response {
        /// The id of the request. Only an error may have none, if the request could not be parsed; in JSON-RPC it is
        /// then null.
        id: Option<Id<'a>>,
        /// The result or error.
        outcome: Outcome<'a>,
    },
}

/// The result or error of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It succeeded.
    Result(Raw<'a>),
    /// It failed.
    Error(Raw<'a>),
}

const JSONRPC: usize = 0;
const ID: usize = 1;
const METHOD: usize = 2;
const PARAMS: usize = 3;
const RESULT: usize = 4;
const ERROR: usize = 5;

static FIELDS: [Field; 6] = [
    Field { key: "jsonrpc", path: "jsonrpc" },
    Field { key: "id", path: "id" },
    Field { key: "method", path: "method" },
    Field { key: "params", path: "params" },
    Field { key: "result", path: "result" },
    Field { key: "error", path: "error" },
];

static RESULT_META: [Field; 1] = [Field { key: "_meta", path: "result._meta" }];
static SUBSCRIPTION_ID: [Field; 1] = [Field {
    key: "io.modelcontextprotocol/subscriptionId",
    path: "_meta[\"io.modelcontextprotocol/subscriptionId\"]",
}];

static REF_NAME: [Field; 1] = [Field { key: "name", path: "params.ref.name" }];
static REF_URI: [Field; 1] = [Field { key: "uri", path: "params.ref.uri" }];
static NOTIFICATIONS: [Field; 1] = [Field { key: "notifications", path: "params.notifications" }];
static SUBSCRIBED: [Field; 1] =
    [Field { key: "resourceSubscriptions", path: "params.notifications.resourceSubscriptions" }];

impl<'a> Envelope<'a> {
    /// The envelope of these bytes, which must be one message and nothing else.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        Self::parse_within(bytes, DEPTH)
    }

    /// The same with another bound than [`DEPTH`], of up to 127.
    pub fn parse_within(bytes: &'a [u8], depth: u32) -> Result<Self, Fault> {
        let mut scanner = Scanner::new(bytes, depth)?;
        if scanner.peek() == Some(b'[') {
            return Err(Fault::Batch);
        }
        let mut fields = Fields::new(&FIELDS);
        let mut params = Params::none();
        scanner.object(|scanner, key| {
            let index = fields.index(key)?;
            let value = if index == Some(PARAMS) { params.take(scanner)? } else { scanner.value()? };
            if let Some(index) = index {
                fields.put(index, value);
            }
            Ok(())
        })?;
        scanner.end()?;
        fields.check_case(0..FIELDS.len())?;
        let message = message(&fields)?;
        let method = match message {
            Message::Request { method, .. } | Message::Notification { method } => {
                let method = Method::named(&method.decoded());
                params.check(method)?;
                Some(method)
            }
            Message::Response { .. } => None,
        };
        Ok(Self { bytes, message, method, params })
    }

    /// The envelope of a message that was parsed before.
    pub(crate) fn checked_before(
        bytes: &'a [u8],
        message: Message<'a>,
        method: Option<Method>,
        params: Params<'a>,
    ) -> Self {
        Self { bytes, message, method, params }
    }

    pub(crate) fn all_params(&self) -> &Params<'a> {
        &self.params
    }

    /// The bytes as they were received, which are the ones to forward.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Which kind of message it is.
    pub fn message(&self) -> Message<'a> {
        self.message
    }

    /// The id of the request, or of the one that it responds to.
    pub fn id(&self) -> Option<Id<'a>> {
        match self.message {
            Message::Request { id, .. } => Some(id),
            Message::Notification { .. } => None,
            Message::Response { id, .. } => id,
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// The name of that method.
    pub fn method_name(&self) -> Option<Cow<'a, str>> {
        match self.message {
            Message::Request { method, .. } | Message::Notification { method } => Some(method.decoded()),
            Message::Response { .. } => None,
        }
    }

    /// The parameters, if there are any.
    pub fn params(&self) -> Option<Raw<'a>> {
        self.params.raw()
    }

    /// The arguments of a tool or prompt.
    ///
    /// They are the payload: they are JSON, and nothing else is validated. A policy reads them with
    /// [`unambiguous_arguments`](Self::unambiguous_arguments).
    pub fn arguments(&self) -> Option<Raw<'a>> {
        self.params.value(params::ARGUMENTS)
    }

    /// The arguments, for a policy. It is a fault if the server might parse them differently.
    ///
    /// Keys that differ in case are no fault: the schema of a tool may have both.
    pub fn unambiguous_arguments(&self) -> Result<Option<Value>, Fault> {
        self.arguments().map(|arguments| arguments.value("params.arguments")).transpose()
    }

    /// The same for a policy that reads single arguments: of those that are read, strings, numbers and booleans are kept, and others are
    /// null. An object with more than 1,000 arguments is a fault, too.
    pub fn scalar_arguments(
        &self,
        is_read: impl Fn(&str) -> bool,
    ) -> Result<Option<Map<String, Value>>, Fault> {
        let members = self.arguments().map(|arguments| arguments.members("params.arguments", is_read));
        Ok(members.transpose()?.flatten())
    }

    /// The resources that a `subscriptions/listen` subscribes to, for a policy. It is a fault if the server might read others, or if there
    /// are more than 10,000.
    pub fn subscribed_resources(&self) -> Result<Vec<Cow<'a, str>>, Fault> {
        let wrong = |field: &Field, expected| Fault::WrongType { field: field.path, expected };
        let Some(params) = self.params.raw() else { return Ok(Vec::new()) };
        let Some(notifications) = params.decided_member(&NOTIFICATIONS)? else { return Ok(Vec::new()) };
        if notifications.kind() != Kind::Object {
            return Err(wrong(&NOTIFICATIONS[0], "an object"));
        }
        let Some(uris) = notifications.decided_member(&SUBSCRIBED)? else { return Ok(Vec::new()) };
        if uris.kind() != Kind::Array {
            return Err(wrong(&SUBSCRIBED[0], "an array of strings"));
        }
        let mut named = Vec::new();
        Scanner::within(uris).array(|scanner| {
            let uri = scanner.value()?;
            if uri.kind() != Kind::Text || named.len() == SUBSCRIPTIONS {
                return Err(wrong(&SUBSCRIBED[0], "an array of up to 10,000 strings"));
            }
            named.push(uri.text()?.decoded());
            Ok(())
        })?;
        Ok(named)
    }

    /// The prompt or the resource that the `ref` of a `completion/complete` names, for a policy. Servers choose by its `type`; a policy that
    /// decides about all that it names does not depend on that. It is a fault if the server might read others.
    pub fn references(&self) -> Result<Vec<(TargetKind, Cow<'a, str>)>, Fault> {
        let Some(reference) = self.params.value(params::REF) else { return Ok(Vec::new()) };
        let mut named = Vec::new();
        for (kind, field) in [(TargetKind::Prompt, &REF_NAME), (TargetKind::Resource, &REF_URI)] {
            if let Some(name) = reference.decided_member(field)? {
                if name.kind() != Kind::Text {
                    return Err(Fault::WrongType { field: field[0].path, expected: "a string" });
                }
                named.push((kind, name.text()?.decoded()));
            }
        }
        Ok(named)
    }

    /// The whole message, for a policy. It is a fault if the server might parse it differently.
    pub fn unambiguous_message(&self) -> Result<Value, Fault> {
        Scanner::new(self.bytes, u32::MAX)?.value()?.value("the message")
    }

    /// The `_meta` of a request or notification.
    pub fn meta(&self) -> &Meta<'a> {
        self.params.meta()
    }

    /// The subscription that a message of the server belongs to: since 2026-07-28, the id of the request that listens.
    /// It is in the `_meta` of the parameters, or of the result that ends the subscription.
    pub fn subscription_id(&self) -> Option<Raw<'a>> {
        let meta = match self.message {
            Message::Response { outcome: Outcome::Result(result), .. } => {
                result.member(&RESULT_META).ok()??
            }
            Message::Response { .. } => return None,
            _ => self.params.value(params::META)?,
        };
        let id = meta.member(&SUBSCRIPTION_ID).ok()??;
        matches!(id.kind(), Kind::Text | Kind::Number).then_some(id)
    }

    /// The revision that an `initialize` requests.
    pub fn requested_version(&self) -> Option<Text<'a>> {
        self.params.value(params::PROTOCOL_VERSION)?.text().ok()
    }

    /// The target of the message. For a tool, prompt, resource or task this is a string, and if it is missing, it is
    /// also missing for the server: a policy then has nothing to allow.
    pub fn target(&self) -> Option<Target<'a>> {
        Target::of(self.method?.target()?, &self.params)
    }
}

/// Without its content, which must not be logged.
impl fmt::Debug for Envelope<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, message, method, .. } = self;
        formatter
            .debug_struct("Envelope")
            .field("bytes", &bytes.len())
            .field("message", message)
            .field("method", method)
            .finish()
    }
}

fn message<'a>(fields: &Fields<'a, 6>) -> Result<Message<'a>, Fault> {
    match fields.value(JSONRPC) {
        Some(version) if version.kind() == Kind::Text && version.text()? == "2.0" => {}
        _ => return Err(Fault::NotJsonRpc),
    }
    let id = fields.value(ID);
    let (result, error) = match (fields.value(RESULT), fields.value(ERROR)) {
        // JSON-RPC forbids both. Many servers have both, and the other is null.
        (Some(result), Some(error)) if error.kind() == Kind::Null => (Some(result), None),
        (Some(result), Some(error)) if result.kind() == Kind::Null => (None, Some(error)),
        both => both,
    };
    match (fields.value(METHOD), result, error) {
        (Some(method), None, None) => {
            if method.kind() != Kind::Text {
                return Err(Fault::WrongType { field: "method", expected: "a string" });
            }
            let method = method.text()?;
            Ok(match id {
                Some(id) => Message::Request { id: Id::new(id)?, method },
                None => Message::Notification { method },
            })
        }
        (None, Some(result), None) => {
            let id = Id::new(id.ok_or(Fault::Missing("id"))?)?;
            Ok(Message::Response { id: Some(id), outcome: Outcome::Result(result) })
        }
        (None, None, Some(error)) => {
            if error.kind() != Kind::Object {
                return Err(Fault::WrongType { field: "error", expected: "an object" });
            }
            let id = id.filter(|id| id.kind() != Kind::Null).map(Id::new).transpose()?;
            Ok(Message::Response { id, outcome: Outcome::Error(error) })
        }
        _ => Err(Fault::Unclear),
    }
}
