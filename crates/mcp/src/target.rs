//! The target of a message: the tool it calls, the resource it reads.

use std::borrow::Cow;

use crate::{
    json::{Field, Kind, Raw, Text},
    params::{self, Params},
};

/// What kind of thing a message names, and so where its name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// `params.name`
    Tool,
    /// `params.name`
    Prompt,
    /// `params.uri`
    Resource,
    /// `params.taskId`
    Task,
    /// `params.clientInfo.name`
    Client,
    /// `params.cursor`
    Cursor,
    /// `params.level`
    Level,
    /// `params.ref.name` or `params.ref.uri`
    Reference,
    /// `params.progressToken`
    ProgressToken,
    /// `params.requestId`
    Request,
}

/// The target of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// What kind of thing it is.
    pub kind: TargetKind,
    /// Its name as it was spelled: a string, or a number where an id may be one.
    pub raw: Raw<'a>,
}

impl TargetKind {
    /// The key of the parameters that holds it.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Tool | Self::Prompt => params::NAME,
            Self::Resource => params::URI,
            Self::Task => params::TASK_ID,
            Self::Client => params::CLIENT_INFO,
            Self::Cursor => params::CURSOR,
            Self::Level => params::LEVEL,
            Self::Reference => params::REF,
            Self::ProgressToken => params::PROGRESS_TOKEN,
            Self::Request => params::REQUEST_ID,
        }
    }

    /// Whether policies decide on it, so that it must be a string or absent.
    pub fn is_decided_on(self) -> bool {
        matches!(self, Self::Tool | Self::Prompt | Self::Resource | Self::Task)
    }
}

impl<'a> Target<'a> {
    pub(crate) fn of(kind: TargetKind, params: &Params<'a>) -> Option<Self> {
        let value = params.value(kind.index())?;
        let raw = match kind {
            TargetKind::Client => value.member(&NAME).ok()??,
            TargetKind::Reference => match value.member(&NAME).ok()? {
                Some(name) => name,
                None => value.member(&URI).ok()??,
            },
            _ => value,
        };
        matches!(raw.kind(), Kind::Text | Kind::Number).then_some(Self { kind, raw })
    }

    /// The name, decoded.
    pub fn name(&self) -> Cow<'a, str> {
        match Text::new(self.raw) {
            Ok(text) => text.decoded(),
            Err(_) => Cow::Borrowed(self.raw.as_str()),
        }
    }
}

static NAME: [Field; 1] = [Field { key: "name", path: "name" }];
static URI: [Field; 1] = [Field { key: "uri", path: "uri" }];
