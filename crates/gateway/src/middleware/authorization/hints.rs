//! The hints of tools, which policies may read when a tool is called.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use skep_authz::Hints;
use skep_mcp::{Envelope, List, Rejection, Verdict, filtered_in};
use tokio::time::timeout;
use tracing::info;

use super::lists::hints;
use crate::{Turns, identity::Holder, limits, message::Exchange};

/// Reads the tools of the server behind the endpoint.
pub trait ToolSource: Send + Sync {
    /// Calls `page` with each page of the list that the server returns to the caller of this request.
    fn read_tools<'a>(
        &'a self,
        exchange: &'a Exchange,
        page: &'a (dyn Fn(&[u8]) + Sync),
    ) -> BoxFuture<'a, Result<(), Rejection>>;
}

/// Knows what each caller sees of the tools of an endpoint.
pub trait CallerTools: Send + Sync {
    /// The hints of the tool that this request calls.
    fn called_hints<'a>(&'a self, exchange: &'a Exchange) -> BoxFuture<'a, Hints>;
}

/// Where the hints of a tool come from, if policies read them.
#[derive(Clone, Copy)]
pub enum Tools<'a> {
    /// From a list of the server behind the endpoint.
    OfServer(&'a dyn ToolSource),
    /// From the endpoint itself.
    OfCaller(&'a dyn CallerTools),
}

/// The hints of tools, as of the last list that had them.
pub(super) struct KnownTools {
    hints: Mutex<HashMap<String, Hints>>,
    /// Those who wait for a list.
    turns: Turns<Holder>,
}

impl Default for KnownTools {
    fn default() -> Self {
        Self { hints: Mutex::default(), turns: Turns::new(limits::TOOL_LISTS_AT_ONCE, 1) }
    }
}

impl KnownTools {
    pub(super) fn get(&self, tool: &str) -> Option<Hints> {
        self.lock().get(tool).copied()
    }

    /// Remembers tools of a list. A server with very many loses the hints of some.
    pub(super) fn remember(&self, tools: HashMap<String, Hints>) {
        let mut known = self.lock();
        if known.len() + tools.len() > limits::KNOWN_TOOLS {
            known.clear();
        }
        known.extend(tools.into_iter().take(limits::KNOWN_TOOLS));
    }

    /// The hints of a tool that no list had so far: the server is asked for its list. Callers would go round a policy otherwise, by not
    /// listing tools before they call one. A tool that is not in the list either is denied.
    pub(super) async fn read(
        &self,
        tool: &str,
        exchange: &Exchange,
        source: &dyn ToolSource,
    ) -> Result<Hints, Rejection> {
        let found = Mutex::new(None);
        let page = |message: &[u8]| {
            let tools = tools_in(message);
            if let Some(hints) = tools.get(tool) {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(*hints);
            }
            self.remember(tools);
        };
        let reading = async {
            // One list at a time for a caller, and a few for all: the first one has the tools that others wait for.
            let _turn = self.turns.take(exchange.holder()).await;
            match self.get(tool) {
                Some(known) => Ok(Some(known)),
                None => source.read_tools(exchange, &page).await.map(|()| None),
            }
        };
        let read = timeout(limits::TOOL_LIST_TIME, reading).await.unwrap_or(Err(Rejection::Timeout));
        match (found.into_inner().unwrap_or_else(PoisonError::into_inner), read) {
            (Some(hints), _) | (None, Ok(Some(hints))) => Ok(hints),
            (None, Ok(None)) => {
                info!("request denied: policies read hints of tools, and the server does not list this tool");
                Err(Rejection::Denied)
            }
            (None, Err(rejection)) => Err(rejection),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Hints>> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tools that a message lists. A malformed list has none.
fn tools_in(message: &[u8]) -> HashMap<String, Hints> {
    let mut tools = HashMap::new();
    let listed = Envelope::parse(message).is_ok_and(|envelope| {
        let listed = filtered_in(&envelope, List::Tools, |item| {
            if tools.len() < limits::KNOWN_TOOLS {
                tools.insert(item.name().into_owned(), hints(item));
            }
            Verdict::Keep
        });
        listed.is_ok()
    });
    if listed { tools } else { HashMap::new() }
}
