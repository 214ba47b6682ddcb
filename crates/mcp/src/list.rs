//! Lists of tools, prompts and resources, filtered for a caller.

use std::borrow::Cow;

use crate::{
    Envelope, Fault, Message, Outcome,
    json::{Field, Fields, Kind, Raw, Scanner, Text},
    splice::{Edits, Json, SpliceError},
};

/// Which list a result holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// `result.tools`
    Tools,
    /// `result.prompts`
    Prompts,
    /// `result.resources`
    Resources,
    /// `result.resourceTemplates`
    ResourceTemplates,
}

/// What happens to an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// It is removed.
    Drop,
    /// It stays, under another name or with another description.
    Replace {
        /// The new name, or URI of a resource.
        name: Option<String>,
        /// The new description, also if it had none.
        description: Option<String>,
    },
}

/// An item of a list.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    raw: Raw<'a>,
    key: Text<'a>,
    fields: Fields<'a, 5>,
}

/// Why a list cannot be filtered. It must not be passed on then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The response or its list is malformed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The changes do not fit together.
    #[error(transparent)]
    Splice(#[from] SpliceError),
}

const NAME: usize = 0;
const DESCRIPTION: usize = 1;
const URI: usize = 2;
const URI_TEMPLATE: usize = 3;
const ANNOTATIONS: usize = 4;

static ITEM: [Field; 5] = [
    Field { key: "name", path: "name of a list item" },
    Field { key: "description", path: "description of a list item" },
    Field { key: "uri", path: "uri of a list item" },
    Field { key: "uriTemplate", path: "uriTemplate of a list item" },
    Field { key: "annotations", path: "annotations of a list item" },
];

static LISTS: [Field; 4] = [
    Field { key: "tools", path: "result.tools" },
    Field { key: "prompts", path: "result.prompts" },
    Field { key: "resources", path: "result.resources" },
    Field { key: "resourceTemplates", path: "result.resourceTemplates" },
];

impl List {
    /// The key of an item that identifies it.
    fn key(self) -> usize {
        match self {
            Self::Tools | Self::Prompts => NAME,
            Self::Resources => URI,
            Self::ResourceTemplates => URI_TEMPLATE,
        }
    }

    fn index(self) -> usize {
        self as usize
    }

    /// The lists that this message holds, if it is a response: for streams where a response may be to any request.
    pub fn lists_in(envelope: &Envelope<'_>) -> Result<Vec<Self>, Fault> {
        let Message::Response { outcome: Outcome::Result(result), .. } = envelope.message() else {
            return Ok(Vec::new());
        };
        if result.kind() != Kind::Object {
            return Ok(Vec::new());
        }
        let lists = lists(result)?;
        Ok([Self::Tools, Self::Prompts, Self::Resources, Self::ResourceTemplates]
            .into_iter()
            .filter(|list| lists.value(list.index()).is_some())
            .collect())
    }
}

impl<'a> Item<'a> {
    /// Its identifier in policies: the name of a tool or prompt, the URI of a resource.
    pub fn name(&self) -> Cow<'a, str> {
        self.key.decoded()
    }

    /// The item as it was received.
    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// Its annotations, such as the hints of a tool.
    pub fn annotations(&self) -> Option<Raw<'a>> {
        self.fields.value(ANNOTATIONS)
    }

    fn take(scanner: &mut Scanner<'a>, list: List) -> Result<Self, Fault> {
        if scanner.peek() != Some(b'{') {
            return Err(Fault::WrongType { field: "a list item", expected: "an object" });
        }
        let mut fields = Fields::new(&ITEM);
        let raw = scanner.object(|scanner, key| fields.take(scanner, key))?;
        fields.check_case(0..ITEM.len())?;
        let Field { path, .. } = ITEM[list.key()];
        let key = fields.value(list.key()).ok_or(Fault::Missing(path))?;
        if key.kind() != Kind::Text {
            return Err(Fault::WrongType { field: path, expected: "a string" });
        }
        Ok(Self { raw, key: key.text()?, fields })
    }

    fn rewrite(&self, edits: &mut Edits<'_>, name: Option<&str>, description: Option<&str>) {
        let key = self.key.raw();
        if let Some(name) = name {
            edits.change(key.range(), Json::Text(name).written().into_owned().into());
        }
        if let Some(description) = description {
            let written = Json::Text(description).written();
            match self.fields.value(DESCRIPTION) {
                Some(old) => edits.change(old.range(), written.into_owned().into()),
                None => {
                    let end = key.range().end;
                    edits.change(end..end, format!(",\"description\":{written}").into());
                }
            }
        }
    }
}

/// The response with its list filtered; everything else in it, known or not, stays byte for byte.
///
/// Errors and messages that are no responses hold no list, and stay as they are. A response that should hold the list
/// and does not, or holds an item that has no name, is an error: an item that policies cannot decide about is not shown.
pub fn filtered<'a>(
    message: &'a [u8],
    list: List,
    verdict: impl FnMut(&Item<'a>) -> Verdict,
) -> Result<Cow<'a, [u8]>, ListError> {
    filtered_in(&Envelope::parse(message)?, list, verdict)
}

/// The same for a message that has been parsed.
pub fn filtered_in<'a>(
    envelope: &Envelope<'a>,
    list: List,
    mut verdict: impl FnMut(&Item<'a>) -> Verdict,
) -> Result<Cow<'a, [u8]>, ListError> {
    let message = envelope.bytes();
    let Message::Response { outcome: Outcome::Result(result), .. } = envelope.message() else {
        return Ok(Cow::Borrowed(message));
    };
    let Field { path, .. } = LISTS[list.index()];
    if result.kind() != Kind::Object {
        return Err(Fault::WrongType { field: "result", expected: "an object" }.into());
    }
    let items = lists(result)?.value(list.index()).ok_or(Fault::Missing(path))?;
    if items.kind() != Kind::Array {
        return Err(Fault::WrongType { field: path, expected: "an array" }.into());
    }
    let mut edits = Edits::of(message);
    let mut place = Place::default();
    Scanner::within(items).array(|scanner| {
        let item = Item::take(scanner, list)?;
        match verdict(&item) {
            Verdict::Keep => place.keep(&item, &mut edits),
            Verdict::Drop => place.drop(&item, &mut edits),
            Verdict::Replace { name, description } => {
                place.keep(&item, &mut edits);
                item.rewrite(&mut edits, name.as_deref(), description.as_deref());
            }
        }
        Ok(())
    })?;
    place.close(&mut edits);
    if edits.is_empty() {
        return Ok(Cow::Borrowed(message));
    }
    Ok(Cow::Owned(edits.bytes()?))
}

fn lists(result: Raw<'_>) -> Result<Fields<'_, 4>, Fault> {
    let mut lists = Fields::new(&LISTS);
    Scanner::within(result).object(|scanner, key| lists.take(scanner, key))?;
    lists.check_case(0..LISTS.len())?;
    Ok(lists)
}

/// The position in a list: a comma is removed together with the item after it, unless that is now the first.
#[derive(Default)]
struct Place {
    kept: bool,
    /// Where the dropped items start that have no kept item before them.
    dropped: Option<usize>,
    end: usize,
}

impl Place {
    fn keep(&mut self, item: &Item<'_>, edits: &mut Edits<'_>) {
        let range = item.raw.range();
        if let Some(start) = self.dropped.take() {
            edits.change(start..range.start, Cow::Borrowed(""));
        }
        self.kept = true;
        self.end = range.end;
    }

    fn drop(&mut self, item: &Item<'_>, edits: &mut Edits<'_>) {
        let range = item.raw.range();
        if self.kept {
            edits.change(self.end..range.end, Cow::Borrowed(""));
        } else {
            self.dropped.get_or_insert(range.start);
        }
        self.end = range.end;
    }

    fn close(self, edits: &mut Edits<'_>) {
        if let Some(start) = self.dropped {
            edits.change(start..self.end, Cow::Borrowed(""));
        }
    }
}
