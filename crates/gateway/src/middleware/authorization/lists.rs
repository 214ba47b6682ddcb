//! Lists, filtered for the caller.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use serde_json::Value;
use skep_authz::{Action, Decision, Feature, Hints, Resource, Subject};
use skep_mcp::{Envelope, Item, List, Rejection, Verdict, filtered_in};
use tracing::warn;

use super::{Authority, AuthorizationRequest, Policies, pdp::DecisionPoint, principal};
use crate::{identity::Identity, limits, message::MessageFilter};

/// The tools whose hints are remembered. A server with more loses the hints of some.
const REMEMBERED_TOOLS: usize = 10_000;

/// Removes from lists what the caller may not use.
pub(super) struct Lists {
    policies: Arc<Policies>,
    identity: Option<Arc<Identity>>,
    /// What the policy decision point decided about the items of the current message.
    verdicts: Mutex<Verdicts>,
}

/// Which items may be used, by what would be done with them and by their place in the list. What is not here may not.
type Verdicts = HashSet<(Action, usize)>;

/// What decides about the items of one list.
enum Decider<'a> {
    Cedar(Subject<'a>),
    Pdp(MutexGuard<'a, Verdicts>),
}

impl Decider<'_> {
    fn allows(&self, action: Action, place: usize, resource: &Resource<'_>) -> bool {
        match self {
            Self::Cedar(subject) => subject.decide(action, resource, None) == Decision::Allow,
            Self::Pdp(verdicts) => verdicts.contains(&(action, place)),
        }
    }
}

impl MessageFilter for Lists {
    /// A policy decision point is queried about each item in the message.
    fn prepare<'a>(&'a self, _: &'a [u8], envelope: &Envelope<'a>) -> Option<BoxFuture<'a, ()>> {
        let Authority::Pdp(point) = &self.policies.authority else { return None };
        // Decisions about the previous message do not apply to this one.
        self.verdicts().clear();
        let identity = self.identity.as_deref()?;
        let mut requests = Vec::new();
        // A malformed message is rejected when it is filtered.
        for list in List::lists_in(envelope).unwrap_or_default() {
            let Some(action) = action(list, self.policies.is_virtual) else { continue };
            let mut place = 0;
            let every = filtered_in(envelope, list, |item| {
                requests.push(((action, place), item.name().into_owned(), hints(item)));
                place += 1;
                Verdict::Keep
            });
            every.ok()?;
        }
        if requests.is_empty() {
            return None;
        }
        let decided = async move {
            let verdicts = verdicts(point, identity, requests).await;
            *self.verdicts() = verdicts;
        };
        Some(decided.boxed())
    }

    /// Every response: a server may send a list that was not requested.
    fn message<'a>(&self, message: &'a [u8], envelope: &Envelope<'a>) -> Result<Cow<'a, [u8]>, Rejection> {
        let mut seen = Cow::Borrowed(message);
        for list in List::lists_in(envelope).map_err(|_| Rejection::Internal)? {
            let Some(action) = action(list, self.policies.is_virtual) else { continue };
            let next = match &seen {
                Cow::Borrowed(_) => self.list(envelope, list, action)?,
                Cow::Owned(message) => {
                    let changed = Envelope::parse(message).map_err(|_| Rejection::Internal)?;
                    Cow::Owned(self.list(&changed, list, action)?.into_owned())
                }
            };
            seen = next;
        }
        Ok(seen)
    }
}

impl Lists {
    pub(super) fn new(policies: Arc<Policies>, identity: Option<Arc<Identity>>) -> Self {
        Self { policies, identity, verdicts: Mutex::default() }
    }

    fn verdicts(&self) -> MutexGuard<'_, Verdicts> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list<'a>(
        &self,
        envelope: &Envelope<'a>,
        list: List,
        action: Action,
    ) -> Result<Cow<'a, [u8]>, Rejection> {
        let Some(identity) = &self.identity else { return Err(Rejection::Denied) };
        let principal = principal(identity);
        let decider = match &self.policies.authority {
            Authority::Cedar(authorizer) => Decider::Cedar(authorizer.subject(&principal)),
            Authority::Pdp(_) => Decider::Pdp(self.verdicts()),
        };
        let mut remembered = HashMap::new();
        let mut place = 0;
        let seen = filtered_in(envelope, list, |item| {
            let name = item.name();
            let hints = hints(item);
            let resource = Resource { hints, ..Resource::new(&name) };
            let allowed = decider.allows(action, place, &resource);
            place += 1;
            if list == List::Tools && remembered.len() < REMEMBERED_TOOLS {
                remembered.insert(name.clone().into_owned(), hints);
            }
            if allowed { Verdict::Keep } else { Verdict::Drop }
        });
        let seen = seen.map_err(|_| Rejection::Internal)?;
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

/// The items that a service allows, of those that it decides about in time.
async fn verdicts(
    point: &DecisionPoint,
    identity: &Identity,
    requests: Vec<((Action, usize), String, Hints)>,
) -> Verdicts {
    let count = requests.len();
    let deadline = tokio::time::Instant::now() + limits::DECISIONS_TIME;
    let requests = requests.into_iter().take(limits::DECISIONS);
    let answers = stream::iter(requests).map(|(item, target, hints)| async move {
        let request =
            AuthorizationRequest { identity, action: item.0, target: &target, hints, arguments: None };
        (item, point.allows(&request).await)
    });
    let mut answers = std::pin::pin!(answers.buffer_unordered(limits::DECISIONS_AT_ONCE));
    let (mut allowed, mut decided) = (Verdicts::new(), 0);
    while let Ok(Some((item, is_allowed))) = tokio::time::timeout_at(deadline, answers.next()).await {
        decided += 1;
        if is_allowed {
            allowed.insert(item);
        }
    }
    if decided < count {
        warn!(
            decided,
            count, "timeout or limit of the policy decision point: undecided items are removed from the list"
        );
    }
    allowed
}

/// What a caller must be allowed to do with an item to see it. A proxy shows templates to all, see [`treatment`].
fn action(list: List, is_virtual: bool) -> Option<Action> {
    match list {
        List::ResourceTemplates if is_virtual => Some(Feature::Resource.action()),
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
