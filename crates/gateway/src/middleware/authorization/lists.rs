//! Lists, filtered for the caller.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use skep_authz::{Action, Decision, Feature, Hints, PrincipalKind, Resource, Subject};
use skep_mcp::{Envelope, Item, List, Raw, Rejection, Verdict, filtered_in};
use tracing::warn;

use super::{Authority, AuthorizationRequest, DECISIONS_IN_A_TURN, Policies, pdp::DecisionPoint};
use crate::{
    identity::{Holder, Identity},
    limits,
    message::MessageFilter,
};

/// Removes from lists what the caller may not use.
pub(super) struct Lists {
    policies: Arc<Policies>,
    kind: PrincipalKind,
    identity: Option<Arc<Identity>>,
    /// Whose requests those to a service are.
    holder: Holder,
    /// What was decided about the items of the current message.
    verdicts: Mutex<Verdicts>,
}

/// Which items may be used, by what would be done with them and by their place in the list. What is not here may not.
type Verdicts = HashSet<(Action, usize)>;

/// An item to decide about: its key in [`Verdicts`], its name, and its hints.
type Undecided = ((Action, usize), String, Hints);

impl MessageFilter for Lists {
    /// Decides about each item in the message.
    fn prepare<'a>(&'a self, _: &'a [u8], envelope: &Envelope<'a>) -> Option<BoxFuture<'a, ()>> {
        // Decisions about the previous message do not apply to this one.
        self.verdicts().clear();
        let identity = self.identity.as_ref()?;
        let mut requests = Vec::new();
        // A malformed message is rejected when it is filtered.
        for list in List::lists_in(envelope).unwrap_or_default() {
            let Some(action) = action(list, self.policies.is_virtual) else { continue };
            let mut place = 0;
            let every = filtered_in(envelope, list, |item| {
                if !self.policies.is_own(action, &item.name()) {
                    requests.push(((action, place), item.name().into_owned(), hints(item)));
                }
                place += 1;
                Verdict::Keep
            });
            every.ok()?;
        }
        if requests.is_empty() {
            return None;
        }
        let decided = async move {
            let verdicts = match &self.policies.authority {
                Authority::Cedar { authorizer, callers } => {
                    evaluated(&callers.subject(authorizer, self.kind, identity), requests).await
                }
                Authority::Pdp(point) => verdicts(point, self, identity, requests).await,
            };
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
    pub(super) fn new(
        policies: Arc<Policies>,
        kind: PrincipalKind,
        identity: Option<Arc<Identity>>,
        holder: Holder,
    ) -> Self {
        Self { policies, kind, identity, holder, verdicts: Mutex::default() }
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
        if self.identity.is_none() {
            return Err(Rejection::Denied);
        }
        let verdicts = self.verdicts();
        let mut tools = HashMap::new();
        let mut place = 0;
        let seen = filtered_in(envelope, list, |item| {
            let allowed = verdicts.contains(&(action, place)) || self.policies.is_own(action, &item.name());
            place += 1;
            if list == List::Tools && tools.len() < limits::KNOWN_TOOLS {
                tools.insert(item.name().into_owned(), hints(item));
            }
            if allowed { Verdict::Keep } else { Verdict::Drop }
        });
        let seen = seen.map_err(|_| Rejection::Internal)?;
        self.policies.tools.remember(tools);
        Ok(seen)
    }
}

/// The items that policies allow. A list may be long, so other requests of the thread have their turn in between.
async fn evaluated(caller: &Subject, requests: Vec<Undecided>) -> Verdicts {
    let mut allowed = Verdicts::new();
    for (number, (item, name, hints)) in requests.into_iter().enumerate() {
        if number % DECISIONS_IN_A_TURN == DECISIONS_IN_A_TURN - 1 {
            tokio::task::yield_now().await;
        }
        let resource = Resource { hints, ..Resource::new(&name) };
        if caller.decide(item.0, &resource, None) == Decision::Allow {
            allowed.insert(item);
        }
    }
    allowed
}

/// The items that a service allows, of those that it decides about in time.
async fn verdicts(
    point: &DecisionPoint,
    Lists { kind, holder, .. }: &Lists,
    identity: &Arc<Identity>,
    requests: Vec<Undecided>,
) -> Verdicts {
    let count = requests.len();
    let deadline = tokio::time::Instant::now() + limits::DECISIONS_TIME;
    let requests = requests.into_iter().take(limits::DECISIONS);
    let answers = stream::iter(requests).map(|(item, target, hints)| async move {
        let (action, target) = (item.0, Cow::Owned(target));
        let request = AuthorizationRequest { kind: *kind, identity, action, target, hints, arguments: None };
        (item, point.allows(&request, *holder).await.unwrap_or(false))
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

pub(super) fn hints(item: &Item<'_>) -> Hints {
    tool_hints(item.annotations())
}

/// The hints among the annotations of a tool, read without a tree: a hostile server may send many values.
pub fn tool_hints(annotations: Option<Raw<'_>>) -> Hints {
    let hint = |key: &str| match annotations?.get(key)?.as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    Hints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin};

    use serde_json::{Value, json};
    use skep_authz::Authorizer;
    use skep_config::run_config::Cedar;

    use super::{super::hints::KnownTools, *};

    fn lists(policy: &str, own_tools: &[&str]) -> Lists {
        let cedar = Cedar { policies: vec![policy.into()], ..Cedar::default() };
        let authority = Authority::cedar(Authorizer::new(&cedar, "files").unwrap());
        let own_tools = own_tools.iter().map(|&tool| tool.to_owned()).collect();
        let policies = Policies { is_virtual: false, authority, own_tools, tools: KnownTools::default() };
        let holder = Holder::new(None, [127, 0, 0, 1].into());
        Lists::new(Arc::new(policies), PrincipalKind::Client, Some(Arc::new(Identity::local())), holder)
    }

    #[tokio::test]
    async fn a_tool_of_the_endpoint_itself_is_listed_whatever_the_policies_permit() {
        let lists = lists(r#"permit(principal, action, resource == Tool::"b");"#, &["own"]);
        let list = |field: &str| {
            let items = json!([{"name": "a"}, {"name": "own"}, {"name": "b"}]);
            json!({"jsonrpc": "2.0", "id": 1, "result": {field: items}}).to_string()
        };
        for (field, expected) in [("tools", json!([{"name": "own"}, {"name": "b"}])), ("prompts", json!([]))]
        {
            let message = list(field);
            let envelope = Envelope::parse(message.as_bytes()).unwrap();
            lists.prepare(message.as_bytes(), &envelope).unwrap().await;
            let seen = lists.message(message.as_bytes(), &envelope).unwrap();
            let seen: Value = serde_json::from_slice(&seen).unwrap();
            assert_eq!(seen["result"][field], expected);
        }
    }

    /// A tree has no number as large as this one.
    #[test]
    fn hints_are_read_without_a_tree() {
        let annotations = r#"{"x":1e999,"readOnlyHint":true,"destructiveHint":false,"openWorldHint":1}"#;
        let expected = Hints { read_only: Some(true), destructive: Some(false), ..Hints::default() };
        assert_eq!(tool_hints(Raw::spelled(annotations)), expected);
        assert_eq!(tool_hints(Raw::spelled("[true]")), Hints::default());
    }

    #[tokio::test]
    async fn a_long_list_is_decided_about_in_many_turns() {
        let lists = lists(r#"permit(principal, action, resource) when { resource.name like "*7" };"#, &[]);
        let tools: Vec<_> = (0..1_000).map(|number| json!({"name": format!("t{number}")})).collect();
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
        let envelope = Envelope::parse(message.as_bytes()).unwrap();
        let mut prepared = pin!(lists.prepare(message.as_bytes(), &envelope).unwrap());
        let mut turns = 0;
        poll_fn(|context| {
            turns += 1;
            prepared.as_mut().poll(context)
        })
        .await;
        assert!(turns > 1_000 / DECISIONS_IN_A_TURN, "{turns}");
        let seen = lists.message(message.as_bytes(), &envelope).unwrap();
        let seen: Value = serde_json::from_slice(&seen).unwrap();
        assert_eq!(seen["result"]["tools"].as_array().unwrap().len(), 100);
    }
}
