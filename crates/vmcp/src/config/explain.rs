//! What a virtual server would do with a request, without a server: the middlewares, the catalog and the route are those of a
//! running one.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use skep_api::vmcp::BackendAuthStrategy;
use skep_gateway::{
    message::Exchange,
    middleware::{Caller, Explanation, Outcome, explain, explain_list},
};
use skep_mcp::{List, Method};

use super::{Listen, Settings, chain, own_tools, view_policy};
use crate::{
    ConfigError,
    catalog::{Catalog, Composite, Entry, Item, Lists, Member, Provider},
    search::InnerCall,
    views::ViewPolicy,
};

/// The step after all middlewares.
const CATALOG: &str = "catalog";

/// A backend, and what it is known to offer.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The name of the backend.
    pub backend: String,
    /// Its tools, as it lists them, as far as they are known.
    pub tools: Vec<Value>,
    /// Whether it has others.
    pub has_others: bool,
    /// How the virtual server authenticates to it, if the backend itself describes that.
    pub strategy: Option<BackendAuthStrategy>,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What each step decides, up to the first that rejects it.
    pub steps: Vec<Explanation>,
    /// Where it goes, if nothing rejects it.
    pub destination: Option<Destination>,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Destination {
    /// To a backend.
    Backend {
        /// Its name.
        backend: String,
        /// What the target is called there.
        name: String,
        /// How the virtual server authenticates to it, without secrets.
        authentication: String,
    },
    /// To a workflow of the virtual server.
    Workflow {
        /// The tools that its steps call, each of which is decided about when it is called.
        calls: Vec<String>,
    },
    /// To a tool of the virtual server itself.
    Own,
    /// To a backend that has it. Which one is not known here.
    Unknown {
        /// Those that may have it.
        backends: Vec<String>,
    },
}

impl Settings {
    /// What becomes of a request, where these are the backends.
    pub async fn explain_request(
        &self,
        caller: &Caller,
        method: &str,
        params: &Value,
        offers: &[Offer],
    ) -> Result<Explained, ConfigError> {
        let config = &self.config;
        let mut exchange = caller.request(method, params)?;
        if config.optimizer.is_some() {
            InnerCall::unwrap(&mut exchange).map_err(|_| ConfigError::new("the call in it is malformed"))?;
        }
        let policy = view_policy(config);
        let catalog = catalog(&policy, offers);
        let target = target(&exchange);
        let is_call = method_of(&exchange) == Some(Method::ToolsCall);
        if is_call {
            let listed = catalog.table(List::Tools).get(&target).map(Entry::hints);
            // A tool that no backend has, has no hints.
            let are_known = !offers.iter().any(|offer| offer.has_others);
            exchange.hints = listed.or_else(|| are_known.then(Default::default));
        }
        let listen = listen();
        let middlewares = chain::middlewares(config, &listen, &self.variables)?;
        let context = chain::context(config, &listen, self.extras.clone());
        let mut steps = explain(&middlewares, &context, &mut exchange).await?;
        if steps.iter().any(|step| step.outcome.is_rejected()) {
            return Ok(Explained { steps, destination: None });
        }
        let destination = if is_call {
            self.destination(&policy, &catalog, &target, offers)
        } else {
            Some(unknown(offers, |_| true))
        };
        if destination.is_none() {
            let message = format!("unknown tool {target:?}");
            let outcome = Outcome::Rejected { status: 200, message };
            steps.push(Explanation { middleware: CATALOG, outcome, details: Vec::new() });
        }
        Ok(Explained { steps, destination })
    }

    /// Which tools a caller is listed, where these are the backends.
    pub async fn listed_tools(&self, caller: &Caller, offers: &[Offer]) -> Result<Vec<String>, ConfigError> {
        let config = &self.config;
        let catalog = catalog(&view_policy(config), offers);
        if let Some(conflict) = catalog.conflict() {
            return Err(ConfigError::new(conflict));
        }
        let listen = listen();
        let middlewares = chain::middlewares(config, &listen, &self.variables)?;
        let context = chain::context(config, &listen, self.extras.clone());
        let tools = catalog.table(List::Tools).iter();
        let tools = tools.filter_map(|tool| serde_json::from_str(tool.json()).ok()).collect();
        explain_list(&middlewares, &context, caller, tools).await
    }

    /// Where a call of this tool goes. None: no backend can have it.
    fn destination(
        &self,
        policy: &ViewPolicy,
        catalog: &Catalog,
        tool: &str,
        offers: &[Offer],
    ) -> Option<Destination> {
        // They are answered before the catalog is looked at.
        if own_tools(&self.config).contains(&tool) {
            return Some(Destination::Own);
        }
        let workflow = |composite: &Composite| {
            let calls = composite.workflow.tools().map(str::to_owned).collect();
            Some(Destination::Workflow { calls })
        };
        let Some(entry) = catalog.table(List::Tools).get(tool) else {
            let has_others = |offer: &Offer| offer.has_others;
            if !offers.iter().any(has_others) {
                return None;
            }
            // Of those that are not known, one may have the tools of its steps.
            let composite = policy.composites.iter().find(|composite| *composite.name == *tool);
            return composite
                .map_or_else(|| Some(unknown(offers, has_others)), |composite| workflow(composite));
        };
        let origin = match &entry.provider {
            Provider::Composite(composite) => return workflow(composite),
            Provider::Scripts => return Some(Destination::Own),
            Provider::Backend(origin) => origin,
        };
        let own = offers.iter().find(|offer| *offer.backend == *origin.backend);
        let own = own.and_then(|offer| offer.strategy.clone());
        let outgoing = self.config.outgoing_auth.as_ref();
        let strategy = own.or_else(|| outgoing?.strategy(&origin.backend).cloned());
        Some(Destination::Backend {
            backend: origin.backend.to_string(),
            name: origin.name.to_string(),
            authentication: authentication(strategy.as_ref()),
        })
    }
}

/// The command line decides nothing of what is explained.
fn listen() -> Listen {
    Listen { host: "0.0.0.0".into(), session_life: None, audits: false }
}

fn method_of(exchange: &Exchange) -> Option<Method> {
    exchange.message.as_ref().and_then(|message| message.method)
}

fn target(exchange: &Exchange) -> String {
    let message = exchange.message.as_ref();
    message.and_then(|message| message.target.as_deref()).unwrap_or_default().to_owned()
}

/// What clients see of the lists that are known.
fn catalog(policy: &ViewPolicy, offers: &[Offer]) -> Catalog {
    let mut members: Vec<Member> = offers
        .iter()
        .map(|offer| {
            let item = |tool: &Value| {
                Some(Item { key: tool["name"].as_str()?.into(), json: tool.to_string().into() })
            };
            let tools = offer.tools.iter().filter_map(item).collect();
            let lists = Lists { tools, ..Lists::default() };
            Member { backend: offer.backend.as_str().into(), lists: Arc::new(lists) }
        })
        .collect();
    members.sort_by(|one, other| one.backend.cmp(&other.backend));
    Catalog::new(&members, &policy.aggregation, &policy.composites, policy.own_tools)
}

fn unknown(offers: &[Offer], may_have_it: impl Fn(&Offer) -> bool) -> Destination {
    let backends = offers.iter().filter(|offer| may_have_it(offer)).map(|offer| offer.backend.clone());
    Destination::Unknown { backends: backends.collect() }
}

/// How requests are authenticated, in words. Names and addresses are not secret, values are.
fn authentication(strategy: Option<&BackendAuthStrategy>) -> String {
    let Some(strategy) = strategy else { return "without credentials".into() };
    let at = |url: &str| url.split(['?', '#']).next().unwrap_or_default().to_owned();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    if let Some(header) = &strategy.header_injection {
        return format!("with the header {}", header.header_name);
    }
    if let Some(exchange) = &strategy.token_exchange {
        let (url, audience) = (at(&exchange.token_url), text(&exchange.audience));
        return format!("with a token that is exchanged at {url} for one with the audience {audience:?}");
    }
    if let Some(upstream) = &strategy.upstream_inject {
        return format!("with the caller's token of {}", upstream.provider_name);
    }
    if let Some(aws) = &strategy.aws_sts {
        return format!("signed with credentials of AWS in {}", aws.region);
    }
    if let Some(obo) = &strategy.obo {
        return format!("with a token on behalf of the caller, from {}", at(&obo.token_url));
    }
    if let Some(xaa) = &strategy.xaa {
        return format!("with a token of {} for the caller", xaa.target_audience);
    }
    match &*strategy.type_ {
        BackendAuthStrategy::UNAUTHENTICATED => "without credentials".into(),
        other => format!("by {other}"),
    }
}
