//! The parameters of a request or notification, as far as they are read.

use crate::{
    Fault, Method,
    json::{Field, Fields, Kind, MEMBERS, Raw, Scanner, Text},
};

/// The indices of the keys in [`FIELDS`].
pub(crate) const NAME: usize = 0;
pub(crate) const URI: usize = 1;
pub(crate) const TASK_ID: usize = 2;
pub(crate) const ARGUMENTS: usize = 3;
pub(crate) const META: usize = 4;
pub(crate) const CURSOR: usize = 5;
pub(crate) const LEVEL: usize = 6;
pub(crate) const REF: usize = 7;
pub(crate) const CLIENT_INFO: usize = 8;
pub(crate) const PROGRESS_TOKEN: usize = 9;
pub(crate) const REQUEST_ID: usize = 10;
pub(crate) const PROTOCOL_VERSION: usize = 11;

/// How many fields of the parameters are read.
pub(crate) const PARAM_FIELDS: usize = 12;
/// How many of their `_meta`.
pub(crate) const META_FIELDS: usize = 6;

static FIELDS: [Field; PARAM_FIELDS] = [
    Field { key: "name", path: "params.name" },
    Field { key: "uri", path: "params.uri" },
    Field { key: "taskId", path: "params.taskId" },
    Field { key: "arguments", path: "params.arguments" },
    Field { key: "_meta", path: "params._meta" },
    Field { key: "cursor", path: "params.cursor" },
    Field { key: "level", path: "params.level" },
    Field { key: "ref", path: "params.ref" },
    Field { key: "clientInfo", path: "params.clientInfo" },
    Field { key: "progressToken", path: "params.progressToken" },
    Field { key: "requestId", path: "params.requestId" },
    Field { key: "protocolVersion", path: "params.protocolVersion" },
];

static IN_META: [Field; META_FIELDS] = [
    Field { key: "progressToken", path: "params._meta.progressToken" },
    Field {
        key: "io.modelcontextprotocol/protocolVersion",
        path: "params._meta[\"io.modelcontextprotocol/protocolVersion\"]",
    },
    Field {
        key: "io.modelcontextprotocol/clientInfo",
        path: "params._meta[\"io.modelcontextprotocol/clientInfo\"]",
    },
    Field {
        key: "io.modelcontextprotocol/clientCapabilities",
        path: "params._meta[\"io.modelcontextprotocol/clientCapabilities\"]",
    },
    Field { key: "traceparent", path: "params._meta.traceparent" },
    Field { key: "tracestate", path: "params._meta.tracestate" },
];

/// How many of [`META_FIELDS`], from the first on, decide how a request is treated.
const META_DECIDED: usize = 4;

/// The parameters, walked once together with their `_meta`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params<'a> {
    raw: Option<Raw<'a>>,
    fields: Fields<'a, PARAM_FIELDS>,
    meta: Meta<'a>,
}

/// The `_meta` of a request or notification.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a> {
    fields: Fields<'a, META_FIELDS>,
}

impl<'a> Params<'a> {
    pub(crate) fn none() -> Self {
        let meta = Meta { fields: Fields::new(&IN_META) };
        Self { raw: None, fields: Fields::new(&FIELDS), meta }
    }

    /// Takes the parameters, of any type; [`check`](Self::check) validates them when the method is known.
    pub(crate) fn take(&mut self, scanner: &mut Scanner<'a>) -> Result<Raw<'a>, Fault> {
        if scanner.peek() != Some(b'{') {
            let raw = scanner.value()?;
            self.raw = Some(raw);
            return Ok(raw);
        }
        let Self { fields, meta, .. } = self;
        let (mut members, mut meta_members) = (0..MEMBERS, 0..MEMBERS);
        let raw = scanner.object(|scanner, key| {
            members.next().ok_or(Fault::Ambiguous("params"))?;
            let index = fields.index(key)?;
            let value = if index == Some(META) && scanner.peek() == Some(b'{') {
                scanner.object(|scanner, key| {
                    meta_members.next().ok_or(Fault::Ambiguous(FIELDS[META].path))?;
                    meta.fields.take(scanner, key)
                })?
            } else {
                scanner.value()?
            };
            if let Some(index) = index {
                fields.put(index, value);
            }
            Ok(())
        })?;
        self.raw = Some(raw);
        Ok(raw)
    }

    /// Checks that a policy reads the same in them as the server will.
    ///
    /// Null means none, as clients send it and servers read it.
    pub(crate) fn check(&self, method: Method) -> Result<(), Fault> {
        object_or_nothing(self.raw, "params")?;
        object_or_nothing(self.value(META), FIELDS[META].path)?;
        self.meta.fields.check_case(0..META_DECIDED)?;
        let target = method.target();
        let decided = target.map(|kind| kind.index());
        self.fields.check_case([META, ARGUMENTS].into_iter().chain(decided))?;
        if let Some(kind) = target.filter(|kind| kind.is_decided_on())
            && let Some(name) = self.value(kind.index())
        {
            if name.kind() != Kind::Text {
                return Err(Fault::WrongType { field: FIELDS[kind.index()].path, expected: "a string" });
            }
            name.text()?;
        }
        Ok(())
    }

    pub(crate) fn raw(&self) -> Option<Raw<'a>> {
        self.raw.filter(|raw| raw.kind() == Kind::Object)
    }

    /// The parameters of a message that was parsed before.
    pub(crate) fn checked_before(
        raw: Option<Raw<'a>>,
        fields: [Option<Raw<'a>>; PARAM_FIELDS],
        meta: [Option<Raw<'a>>; META_FIELDS],
    ) -> Self {
        let meta = Meta { fields: Fields::read_before(&IN_META, meta) };
        Self { raw, fields: Fields::read_before(&FIELDS, fields), meta }
    }

    /// The parameters, also where they are null.
    pub(crate) fn whole(&self) -> Option<Raw<'a>> {
        self.raw
    }

    pub(crate) fn values(&self) -> [Option<Raw<'a>>; PARAM_FIELDS] {
        self.fields.values()
    }

    pub(crate) fn value(&self, index: usize) -> Option<Raw<'a>> {
        self.fields.value(index)
    }

    pub(crate) fn meta(&self) -> &Meta<'a> {
        &self.meta
    }
}

impl<'a> Meta<'a> {
    pub(crate) fn values(&self) -> [Option<Raw<'a>>; META_FIELDS] {
        self.fields.values()
    }

    /// The token with which the progress of this request is reported: a string or a number.
    pub fn progress_token(&self) -> Option<Raw<'a>> {
        self.fields.value(0)
    }

    /// `io.modelcontextprotocol/protocolVersion`
    pub fn protocol_version(&self) -> Option<Raw<'a>> {
        self.fields.value(1)
    }

    /// `io.modelcontextprotocol/clientInfo`
    pub fn client_info(&self) -> Option<Raw<'a>> {
        self.fields.value(2)
    }

    /// `io.modelcontextprotocol/clientCapabilities`
    pub fn client_capabilities(&self) -> Option<Raw<'a>> {
        self.fields.value(3)
    }

    /// W3C trace context, if it is a string.
    pub fn trace_parent(&self) -> Option<Text<'a>> {
        self.fields.value(4)?.text().ok()
    }

    /// W3C trace context, if it is a string.
    pub fn trace_state(&self) -> Option<Text<'a>> {
        self.fields.value(5)?.text().ok()
    }
}

fn object_or_nothing(raw: Option<Raw<'_>>, field: &'static str) -> Result<(), Fault> {
    match raw.map(|raw| raw.kind()) {
        None | Some(Kind::Object | Kind::Null) => Ok(()),
        Some(_) => Err(Fault::WrongType { field, expected: "an object" }),
    }
}
