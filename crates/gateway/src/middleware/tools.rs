//! Which tools are offered, and under what names.
//!
//! A filter uses the names that callers see; inner middlewares see the names of the server.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use skep_config::run_config::ToolFilter;
use skep_mcp::{Edits, Envelope, Json, List, Method, Rejection, Verdict, filtered_in};

use crate::{
    http::ErrorResponse,
    message::{Exchange, MessageFilter},
};

/// Both sides of a renaming.
struct Names {
    /// The names to offer. Empty means all.
    offered: HashSet<String>,
    /// The names and descriptions that callers see, by the server's names.
    overrides: HashMap<String, (Option<String>, Option<String>)>,
    /// The server's names, by those that callers see.
    actual: HashMap<String, String>,
}

impl Names {
    fn new(parameters: &ToolFilter) -> Self {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let overrides: HashMap<_, _> = parameters
            .tools_override
            .iter()
            .map(|(actual, shown)| (actual.clone(), (set(&shown.name), set(&shown.description))))
            .collect();
        let renamed =
            overrides.iter().filter_map(|(actual, (name, _))| Some((name.clone()?, actual.clone())));
        Self {
            actual: renamed.collect(),
            overrides,
            offered: parameters.filter_tools.iter().cloned().collect(),
        }
    }

    fn offers(&self, seen: &str) -> bool {
        self.offered.is_empty() || self.offered.contains(seen)
    }

    /// What becomes of a tool that the server lists.
    fn verdict(&self, actual: &str) -> Verdict {
        let (name, description) = self.overrides.get(actual).cloned().unwrap_or_default();
        if !self.offers(name.as_deref().unwrap_or(actual)) {
            return Verdict::Drop;
        }
        if name.is_none() && description.is_none() {
            return Verdict::Keep;
        }
        Verdict::Replace { name, description }
    }

    /// The server's name for a tool that a caller names, if callers may see that tool.
    fn resolve<'a>(&'a self, seen: &'a str) -> Option<&'a str> {
        if !self.offers(seen) {
            return None;
        }
        match self.actual.get(seen) {
            Some(actual) => Some(actual),
            // Under its own name, a tool that has another one does not exist.
            None => self.overrides.get(seen).is_none_or(|(name, _)| name.is_none()).then_some(seen),
        }
    }
}

/// Removes tools from lists, and renames them there.
pub(crate) struct ToolLists(Arc<Names>);

impl ToolLists {
    pub(super) fn new(parameters: &ToolFilter) -> Self {
        Self(Arc::new(Names::new(parameters)))
    }

    pub(super) fn filter(&self) -> Box<dyn MessageFilter> {
        Box::new(Lists(self.0.clone()))
    }
}

struct Lists(Arc<Names>);

impl MessageFilter for Lists {
    /// Every response: a list that was not requested is filtered as well.
    fn message<'a>(&self, message: &'a [u8], envelope: &Envelope<'a>) -> Result<Cow<'a, [u8]>, Rejection> {
        if !List::lists_in(envelope).map_err(|_| Rejection::Internal)?.contains(&List::Tools) {
            return Ok(Cow::Borrowed(message));
        }
        let seen = filtered_in(envelope, List::Tools, |item| self.0.verdict(&item.name()));
        seen.map_err(|_| Rejection::Internal)
    }
}

/// Rejects calls of hidden tools, and undoes renames.
pub(crate) struct ToolCalls(Names);

impl ToolCalls {
    pub(super) fn new(parameters: &ToolFilter) -> Self {
        Self(Names::new(parameters))
    }

    pub(super) fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        let Some(call) = exchange.message.as_ref().filter(|call| call.method == Some(Method::ToolsCall))
        else {
            return Ok(());
        };
        let Some(seen) = call.target.clone() else { return Err(exchange.reject(&Rejection::HiddenTool)) };
        let Some(actual) = self.0.resolve(&seen) else {
            return Err(exchange.reject(&Rejection::HiddenTool));
        };
        if actual == seen {
            return Ok(());
        }
        self.rename(exchange, actual).map_err(|rejection| exchange.reject(&rejection))
    }

    fn rename(&self, exchange: &mut Exchange, actual: &str) -> Result<(), Rejection> {
        let call = exchange.message.as_ref().ok_or(Rejection::HiddenTool)?;
        let envelope = call.envelope()?;
        let target = envelope.target().ok_or(Rejection::HiddenTool)?;
        let renamed = Edits::of(&exchange.body).replace(target.raw, Json::Text(actual)).bytes();
        let renamed = renamed.map_err(|_| Rejection::Internal)?;
        exchange.replace_message(Bytes::from(renamed))
    }
}
