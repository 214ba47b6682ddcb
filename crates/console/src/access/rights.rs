//! What a user may see: what the API server lets them get.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use skep_api::GROUP;
use skep_config::administration::{self, SUBRESOURCE};
use tracing::debug;

use crate::{
    Key, limits,
    objects::{Child, plural},
};

/// The subresource whose reader may see calls. It exists in roles only.
const CALLS: &str = "calls";

/// The rights of a user, as the API server has decided about them a short time ago.
pub(crate) struct Rights {
    /// A client with the user's own token.
    client: Client,
    decisions: Mutex<HashMap<Question, (Instant, bool)>>,
    rules: Mutex<HashMap<String, (Instant, Rules)>>,
}

/// The rules of a namespace. None if the API server does not know all of them.
type Rules = Option<Arc<[ResourceRule]>>;

/// What the API server decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    namespace: String,
    /// Empty for all of the namespace.
    name: String,
}

/// A right on the sessions of users at the authorization server of an object, and on its registered clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionRight {
    /// To list them.
    List,
    /// To end sessions, and to forget clients.
    End,
}

impl SessionRight {
    fn verb(self) -> &'static str {
        match self {
            Self::List => "get",
            Self::End => "delete",
        }
    }

    /// The error of a user who does not have it.
    pub(crate) fn missing(self) -> &'static str {
        match self {
            Self::List => {
                "you may not see the sessions of this server: that needs the right to get its subresource sessions"
            }
            Self::End => {
                "you may not end sessions of this server: that needs the right to delete its subresource sessions"
            }
        }
    }
}

impl Question {
    fn get(group: &'static str, resource: &'static str, namespace: &str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { verb: "get", group, resource, subresource: "", namespace, name }
    }
}

impl Rights {
    pub(super) fn new(client: Client) -> Self {
        Self { client, decisions: Mutex::default(), rules: Mutex::default() }
    }

    pub(super) async fn may_get(&self, key: &Key) -> bool {
        self.may(key, "").await
    }

    pub(super) async fn may_get_calls(&self, key: &Key) -> bool {
        self.may_get(key).await && self.may(key, CALLS).await
    }

    pub(super) async fn may_administer(&self, key: &Key, right: SessionRight) -> bool {
        let Some(resource) = administration::resource(&key.kind) else { return false };
        let object = Question::get(GROUP, resource, &key.namespace, &key.name);
        let sessions = Question { verb: right.verb(), subresource: SUBRESOURCE, ..object };
        self.may_get(key).await && self.is_allowed(sessions).await
    }

    pub(super) async fn may_get_child(&self, owner: &Key, child: &Child) -> bool {
        let (group, resource) = match child.kind.as_str() {
            "Deployment" => ("apps", "deployments"),
            "StatefulSet" => ("apps", "statefulsets"),
            "Service" => ("", "services"),
            _ => return false,
        };
        self.is_allowed(Question::get(group, resource, &owner.namespace, &child.name)).await
    }

    pub(super) async fn may_get_pod(&self, namespace: &str, name: &str) -> bool {
        self.is_allowed(Question::get("", "pods", namespace, name)).await
    }

    /// Events are about any object of their namespace, so the right to get one of these is not enough.
    pub(super) async fn may_list_events(&self, namespace: &str) -> bool {
        self.is_allowed(Question { verb: "list", ..Question::get("", "events", namespace, "") }).await
    }

    async fn may(&self, key: &Key, subresource: &'static str) -> bool {
        let Some(resource) = plural(&key.kind) else { return false };
        let object = Question::get(GROUP, resource, &key.namespace, &key.name);
        self.is_allowed(Question { subresource, ..object }).await
    }

    async fn is_allowed(&self, one: Question) -> bool {
        let all = Question { name: String::new(), ..one.clone() };
        // Rules are no decision, but what they do not mention is not allowed, and need not be decided one by one.
        match self.rules(&one.namespace).await {
            Some(rules) if !rules.iter().any(|rule| mentions(rule, &one)) => return false,
            _ => {}
        }
        self.decision(all).await || self.decision(one).await
    }

    async fn decision(&self, question: Question) -> bool {
        {
            let decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((time, decision)) = decisions.get(&question)
                && time.elapsed() < limits::RIGHTS_TIME
            {
                return *decision;
            }
        }
        let decision = self.review(&question).await;
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.len() >= limits::RIGHTS {
            decisions.clear();
        }
        decisions.insert(question, (Instant::now(), decision));
        decision
    }

    async fn review(&self, question: &Question) -> bool {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attributes = ResourceAttributes {
            group: Some(question.group.to_owned()),
            resource: Some(question.resource.to_owned()),
            subresource: given(question.subresource),
            namespace: given(&question.namespace),
            name: given(&question.name),
            verb: Some(question.verb.into()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        match Api::all(self.client.clone()).create(&PostParams::default(), &review).await {
            Ok(review) => review.status.is_some_and(|status| status.allowed),
            Err(error) => {
                debug!(%error, "a right could not be reviewed, and is denied");
                false
            }
        }
    }

    async fn rules(&self, namespace: &str) -> Rules {
        {
            let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((time, known)) = rules.get(namespace)
                && time.elapsed() < limits::RIGHTS_TIME
            {
                return known.clone();
            }
        }
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace.into()) },
            ..SelfSubjectRulesReview::default()
        };
        let reviewed = Api::all(self.client.clone()).create(&PostParams::default(), &review).await;
        let status = reviewed.ok().and_then(|review| review.status);
        let known = status.filter(|status| !status.incomplete).map(|status| status.resource_rules.into());
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if rules.len() >= limits::RIGHTS {
            rules.clear();
        }
        rules.insert(namespace.to_owned(), (Instant::now(), known.clone()));
        known
    }
}

/// Whether a rule may allow it.
fn mentions(rule: &ResourceRule, question: &Question) -> bool {
    let has = |list: &Option<Vec<String>>, wanted: &str| {
        list.iter().flatten().any(|entry| entry == "*" || entry == wanted)
    };
    let wanted = match question.subresource {
        "" => question.resource.to_owned(),
        subresource => format!("{}/{subresource}", question.resource),
    };
    let of_any = format!("*/{}", question.subresource);
    let verbs = Some(rule.verbs.clone());
    let names = rule.resource_names.as_deref().unwrap_or_default();
    has(&verbs, question.verb)
        && has(&rule.api_groups, question.group)
        && (has(&rule.resources, &wanted) || has(&rule.resources, &of_any))
        && (names.is_empty() || names.contains(&question.name))
}
