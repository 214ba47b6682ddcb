//! Authorization of requests. Where there are policies, a request that none of them permits is denied.

mod callers;
mod hints;
mod lists;
mod pdp;
mod principals;

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};
use skep_authz::{
    Action, Authorizer, Decision, Denial, Document, Hints, Principal, PrincipalKind, Resource, Treatment,
    treatment,
};
use skep_config::run_config;
use skep_mcp::{Rejection, TargetKind};
use tracing::info;

use super::{ChainContext, provider::Provider};
use crate::{
    ConfigError,
    body::Share,
    http::ErrorResponse,
    identity::{Holder, Identity},
    limits,
    message::{Exchange, MessageFilter, ParsedMessage},
    outbound::Busy,
};
use callers::Callers;
use hints::KnownTools;
pub use hints::{CallerTools, ToolSource, Tools};
use lists::Lists;
pub use lists::tool_hints;
use pdp::DecisionPoint;
use principals::Principals;

/// Who decides where there is a decision point.
const QUERIED: &str = "a policy decision point decides, which is not queried here";
/// How many decisions are made before other requests have their turn.
const DECISIONS_IN_A_TURN: usize = 32;

/// The policies of a server.
pub(crate) struct Authorization {
    policies: Arc<Policies>,
    /// Whose claims the policies are about, if not those of the caller's own token.
    provider: Option<Provider>,
    /// Callers with those claims.
    principals: Principals,
}

struct Policies {
    authority: Authority,
    /// Whether they are those of a virtual server.
    is_virtual: bool,
    /// Tools that each caller may call: policies decide about what these reach.
    own_tools: HashSet<String>,
    /// The hints of the server's tools, where the endpoint does not know them itself.
    tools: KnownTools,
}

/// What decides.
enum Authority {
    /// Policies, evaluated in this process.
    Cedar { authorizer: Authorizer, callers: Callers },
    /// A service, queried each time.
    Pdp(Box<DecisionPoint>),
}

/// A request as policies see it: principal, action, resource and arguments.
struct AuthorizationRequest<'a> {
    kind: PrincipalKind,
    identity: &'a Arc<Identity>,
    action: Action,
    target: Cow<'a, str>,
    hints: Hints,
    arguments: Option<Value>,
}

impl Authorization {
    pub(super) fn new(
        parameters: &run_config::Authorization,
        context: &ChainContext<'_>,
    ) -> Result<Self, ConfigError> {
        let server = context.server;
        let wrong = |error: &dyn std::fmt::Display| ConfigError::new(format!("authorization: {error}"));
        let Some(document) = &parameters.config_data else {
            return Err(wrong(&"config_data is missing"));
        };
        let document: Value = document.read().map_err(|error| wrong(&error))?;
        let mut provider = None;
        let authority = match Document::read(&document).map_err(|error| wrong(&error))? {
            Document::Cedar(cedar) => {
                let (field, name) =
                    ("authorization: cedar.primary_upstream_provider", &cedar.primary_upstream_provider);
                provider = (!name.is_empty()).then(|| Provider::new(field, name, context)).transpose()?;
                Authority::cedar(Authorizer::new(&cedar, server).map_err(|error| wrong(&error))?)
            }
            Document::Pdp(pdp) => {
                let point = DecisionPoint::new(pdp, server).map_err(|error| wrong(&error))?;
                Authority::Pdp(Box::new(point))
            }
        };
        let is_virtual = context.is_virtual;
        let own_tools = context.own_tools.iter().map(|&tool| tool.to_owned()).collect();
        let policies = Arc::new(Policies { authority, is_virtual, own_tools, tools: KnownTools::default() });
        Ok(Self { policies, provider, principals: Principals::default() })
    }

    /// `tools` are those that the request may call.
    pub(super) async fn request(
        &self,
        exchange: &mut Exchange,
        tools: Option<Tools<'_>>,
    ) -> Result<(), ErrorResponse> {
        if let Some(provider) = self.provider.as_ref().filter(|_| exchange.origin.workflow().is_none()) {
            exchange.caller.principal = self.principals.of(provider, exchange.caller.identity.as_ref()).await;
        }
        let _memory = self.arguments_memory(exchange).map_err(|rejection| exchange.reject(&rejection))?;
        let mut requests = self.authorization_requests(exchange)?;
        let Some(first) = requests.first_mut() else { return Ok(()) };
        let action = first.action;
        if let Some(source) = tools.filter(|_| action == Action::CallTool && self.misses_hints(exchange)) {
            first.hints = match source {
                Tools::OfCaller(tools) => tools.called_hints(exchange).await,
                Tools::OfServer(_) if self.policies.tools.get(&first.target).is_some() => first.hints,
                Tools::OfServer(source) => {
                    // In a box: it is seldom necessary.
                    let read = Box::pin(self.policies.tools.read(&first.target, exchange, source)).await;
                    read.map_err(|rejection| exchange.reject(&rejection))?
                }
            };
        }
        let allowed = match &self.policies.authority {
            Authority::Cedar { authorizer, callers } => are_permitted(&requests, authorizer, callers).await,
            Authority::Pdp(point) => {
                let allowed = Box::pin(are_allowed(&requests, point, exchange.holder())).await;
                allowed.map_err(|busy| exchange.reject(&busy.into()))?
            }
        };
        let denied = match action {
            _ if !self.policies.is_virtual => Rejection::Denied,
            Action::CallTool => Rejection::DeniedBy { what: "call" },
            Action::GetPrompt => Rejection::DeniedBy { what: "prompt" },
            _ => Rejection::DeniedBy { what: "read" },
        };
        if allowed { Ok(()) } else { Err(exchange.reject(&denied)) }
    }

    /// Whether policies may read hints of tools.
    pub(super) fn reads_hints(&self) -> bool {
        match &self.policies.authority {
            Authority::Cedar { authorizer, .. } => authorizer.reads_hints(),
            // It gets them, and its policies are not known.
            Authority::Pdp(_) => true,
        }
    }

    /// Whether policies may read the hints of the tool that a request calls, and it does not have them.
    fn misses_hints(&self, exchange: &Exchange) -> bool {
        self.reads_hints() && exchange.hints.is_none()
    }

    /// Why only a running endpoint can decide about a request, if that is so: a decision point is not queried for an explanation, and
    /// hints of tools are not known without the server.
    pub(super) fn undecided(&self, exchange: &Exchange) -> Option<Vec<String>> {
        let mut requests = self.authorization_requests(exchange).ok()?;
        let first = requests.first_mut()?;
        let Authority::Cedar { authorizer, callers } = &self.policies.authority else {
            return Some(vec![QUERIED.into()]);
        };
        if first.action != Action::CallTool || !self.misses_hints(exchange) {
            return None;
        }
        let without: Vec<String> = first.reasons(authorizer, callers);
        first.depends_on_hints(authorizer, callers).then(|| {
            let without = without.iter().map(|reason| format!("without hints: {reason}"));
            let why = "policies read hints of the tool, which a running server knows".to_owned();
            std::iter::once(why).chain(without).collect()
        })
    }

    /// The same for a list of tools.
    pub(super) fn undecided_list(&self, exchange: &Exchange, tools: &[Value]) -> Option<String> {
        let identity = self.principal(exchange)?;
        // Of those that a server lists, more is known than the name.
        let names = tools.iter().filter(|tool| tool.as_object().is_some_and(|tool| tool.len() == 1));
        let mut names = names.filter_map(|tool| tool["name"].as_str());
        let Authority::Cedar { authorizer, callers } = &self.policies.authority else {
            return (!tools.is_empty()).then(|| QUERIED.to_owned());
        };
        if !authorizer.reads_hints() {
            return None;
        }
        let name = names.find(|name| {
            let (kind, action, target) = (kind(exchange), Action::CallTool, Cow::Borrowed(*name));
            let (hints, arguments) = (Hints::default(), None);
            let mut request = AuthorizationRequest { kind, identity, action, target, hints, arguments };
            !self.policies.is_own(action, name) && request.depends_on_hints(authorizer, callers)
        })?;
        Some(format!("policies read hints of the tool {name:?}, which a running server knows"))
    }

    /// Which policies decide about a request.
    pub(super) fn reasons(&self, exchange: &Exchange) -> Vec<String> {
        let requests = self.authorization_requests(exchange).unwrap_or_default();
        let Authority::Cedar { authorizer, callers } = &self.policies.authority else { return Vec::new() };
        requests.iter().flat_map(|request| request.reasons(authorizer, callers)).collect()
    }

    /// The caller as the policies see it. If the provider has no claims about it, none of them can permit anything.
    fn principal<'a>(&self, exchange: &'a Exchange) -> Option<&'a Arc<Identity>> {
        if let Some(workflow) = exchange.origin.workflow() {
            return Some(workflow);
        }
        if self.provider.is_some() {
            exchange.caller.principal.as_ref()
        } else {
            exchange.caller.identity.as_ref()
        }
    }

    /// What policies must permit for a request to pass. Nothing if they do not apply to it.
    fn authorization_requests<'a>(
        &self,
        exchange: &'a Exchange,
    ) -> Result<Vec<AuthorizationRequest<'a>>, ErrorResponse> {
        let Some(message) = &exchange.message else { return Ok(Vec::new()) };
        // A response to the server requests nothing of it.
        if message.method.is_none() {
            return Ok(Vec::new());
        }
        let denied = || exchange.reject(&Rejection::Denied);
        let rejected = |rejection: Rejection| exchange.reject(&rejection);
        let kind = kind(exchange);
        match treatment(&message.method_name) {
            Treatment::Always | Treatment::FilterList(_) => Ok(Vec::new()),
            Treatment::Deny => Err(denied()),
            Treatment::Check(action) => {
                let (Some(target), Some(identity)) = (&message.target, self.principal(exchange)) else {
                    return Err(denied());
                };
                if self.policies.is_own(action, target) {
                    return Ok(Vec::new());
                }
                let arguments = self.arguments(message).map_err(rejected)?;
                let hints = exchange.hints.or_else(|| self.policies.tools.get(target)).unwrap_or_default();
                let target = Cow::Borrowed(&**target);
                Ok(vec![AuthorizationRequest { kind, identity, action, target, hints, arguments }])
            }
            Treatment::CheckEach(action) => {
                let subscribed = message.envelope().map_err(rejected)?.subscribed_resources();
                let subscribed = subscribed.map_err(|fault| rejected(fault.into()))?;
                self.requests_for(exchange, subscribed.into_iter().map(|uri| (action, uri)).collect())
            }
            Treatment::CheckReference => {
                let named = message.envelope().map_err(rejected)?.references();
                let named = named.map_err(|fault| rejected(fault.into()))?;
                if named.is_empty() {
                    return Err(denied());
                }
                let action = |kind| match kind {
                    TargetKind::Prompt => Action::GetPrompt,
                    _ => Action::ReadResource,
                };
                self.requests_for(
                    exchange,
                    named.into_iter().map(|(kind, name)| (action(kind), name)).collect(),
                )
            }
        }
    }

    /// The requests for all of these.
    fn requests_for<'a>(
        &self,
        exchange: &'a Exchange,
        named: Vec<(Action, Cow<'a, str>)>,
    ) -> Result<Vec<AuthorizationRequest<'a>>, ErrorResponse> {
        let Some(identity) = self.principal(exchange).filter(|_| named.len() <= limits::DECISIONS) else {
            let denied = || exchange.reject(&Rejection::Denied);
            return if named.is_empty() { Ok(Vec::new()) } else { Err(denied()) };
        };
        let kind = kind(exchange);
        let request = |(action, target)| {
            let (hints, arguments) = (Hints::default(), None);
            AuthorizationRequest { kind, identity, action, target, hints, arguments }
        };
        Ok(named.into_iter().map(request).collect())
    }

    /// What the arguments take that a policy decision point gets.
    fn arguments_memory(&self, exchange: &Exchange) -> Result<Option<Share>, Rejection> {
        let (Authority::Pdp(_), Some(message)) = (&self.policies.authority, &exchange.message) else {
            return Ok(None);
        };
        let envelope = message.envelope()?;
        let arguments = envelope.arguments().map(|arguments| arguments.as_str().as_bytes());
        let arguments = arguments.filter(|arguments| arguments.len() <= limits::DECISION_ARGUMENTS);
        arguments.map(|arguments| exchange.tree_memory(arguments)).transpose()
    }

    /// The arguments that the policies may read. A caller can send very many.
    fn arguments(&self, message: &ParsedMessage) -> Result<Option<Value>, Rejection> {
        let envelope = message.envelope()?;
        match &self.policies.authority {
            Authority::Cedar { authorizer, .. } if !authorizer.reads_arguments() => Ok(None),
            Authority::Cedar { authorizer, .. } => {
                let arguments = envelope.scalar_arguments(|name| authorizer.reads_argument(name));
                Ok(arguments.map_err(Rejection::Message)?.map(Value::Object))
            }
            // It gets all of them: parsed, they take many times their size.
            Authority::Pdp(_) => match envelope.arguments() {
                Some(all) if all.as_str().len() > limits::DECISION_ARGUMENTS => Err(Rejection::TooLarge),
                _ => envelope.unambiguous_arguments().map_err(Rejection::Message),
            },
        }
    }

    pub(super) fn filter(&self, exchange: &Exchange) -> Option<Box<dyn MessageFilter>> {
        let identity = self.principal(exchange).cloned();
        Some(Box::new(Lists::new(self.policies.clone(), kind(exchange), identity, exchange.holder())))
    }
}

impl Authority {
    fn cedar(authorizer: Authorizer) -> Self {
        Self::Cedar { authorizer, callers: Callers::default() }
    }
}

impl Policies {
    /// Whether this calls a tool of the endpoint itself.
    fn is_own(&self, action: Action, target: &str) -> bool {
        action == Action::CallTool && self.own_tools.contains(target)
    }
}

impl AuthorizationRequest<'_> {
    fn principal(&self) -> Principal<'_> {
        principal(self.kind, self.identity)
    }

    fn resource(&self) -> Resource<'_> {
        Resource { hints: self.hints, ..Resource::new(&self.target) }
    }

    fn arguments(&self) -> Option<&Map<String, Value>> {
        self.arguments.as_ref().and_then(Value::as_object)
    }

    /// Which policies decide about it.
    fn reasons(&self, authorizer: &Authorizer, callers: &Callers) -> Vec<String> {
        let (principal, resource) = (self.principal(), self.resource());
        // If a policy failed, others may permit the request, and do not decide.
        match self.decision(authorizer, callers) {
            Decision::Allow | Decision::Deny(Denial::Forbidden(_)) => {}
            Decision::Deny(denial) => return vec![authorizer.explained(&denial)],
        }
        let determining = authorizer.determining(&principal, self.action, &resource, self.arguments());
        let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        determining.into_iter().map(|(name, text)| format!("{name}: {}", one_line(text))).collect()
    }

    /// Whether its hints, as far as the server may give them, make a difference.
    fn depends_on_hints(&mut self, authorizer: &Authorizer, callers: &Callers) -> bool {
        let mut decisions = all_hints().map(|hints| {
            self.hints = hints;
            self.decision(authorizer, callers) == Decision::Allow
        });
        let first = decisions.next();
        decisions.any(|decision| Some(decision) != first)
    }

    fn decision(&self, authorizer: &Authorizer, callers: &Callers) -> Decision {
        let caller = callers.subject(authorizer, self.kind, self.identity);
        caller.decide(self.action, &self.resource(), self.arguments())
    }
}

/// All hints that a tool may have.
fn all_hints() -> impl Iterator<Item = Hints> {
    const VALUES: [Option<bool>; 3] = [None, Some(false), Some(true)];
    VALUES.into_iter().flat_map(|read_only| {
        VALUES.into_iter().flat_map(move |destructive| {
            VALUES.into_iter().flat_map(move |idempotent| {
                VALUES.map(|open_world| Hints { read_only, destructive, idempotent, open_world })
            })
        })
    })
}

/// Whether policies permit all of these. There may be many, so other requests of the thread have their turn in between.
async fn are_permitted(
    requests: &[AuthorizationRequest<'_>],
    authorizer: &Authorizer,
    callers: &Callers,
) -> bool {
    for (number, request) in requests.iter().enumerate() {
        if number % DECISIONS_IN_A_TURN == DECISIONS_IN_A_TURN - 1 {
            tokio::task::yield_now().await;
        }
        if let Decision::Deny(denial) = request.decision(authorizer, callers) {
            info!(action = request.action.as_str(), %denial, "request denied");
            return false;
        }
    }
    true
}

/// Whether a service allows all of these, in time.
async fn are_allowed(
    requests: &[AuthorizationRequest<'_>],
    point: &DecisionPoint,
    holder: Holder,
) -> Result<bool, Busy> {
    if let [request] = requests {
        return point.allows(request, holder).await;
    }
    let answers: Vec<_> = requests.iter().map(|request| point.allows(request, holder).boxed()).collect();
    let all = stream::iter(answers)
        .buffer_unordered(limits::DECISIONS_AT_ONCE)
        .try_all(|is_allowed| async move { is_allowed });
    tokio::time::timeout(limits::DECISIONS_TIME, all).await.unwrap_or(Ok(false))
}

/// Who acts in a request.
fn kind(exchange: &Exchange) -> PrincipalKind {
    if exchange.origin.workflow().is_some() { PrincipalKind::Workflow } else { PrincipalKind::Client }
}

fn principal(kind: PrincipalKind, identity: &Identity) -> Principal<'_> {
    Principal { kind, subject: &identity.subject, claims: &identity.claims }
}
