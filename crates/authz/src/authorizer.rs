//! The authorizer.

use std::sync::Arc;

use cedar_policy::PolicyId;
use serde_json::{Map, Value};
use skep_config::run_config::Cedar;

use crate::{
    Action, Decision, Denial, Error, Principal, Resource, Subject,
    compiled::{Compiled, order},
};

/// Parsed policies. They are parsed once and shared by all requests.
#[derive(Clone)]
pub struct Authorizer(Arc<Compiled>);

impl Authorizer {
    /// Parses a document. Resources are in `MCP::"<server>"`, or have no parent if the name is empty.
    pub fn new(cedar: &Cedar, server: &str) -> Result<Self, Error> {
        Compiled::new(cedar, server).map(|compiled| Self(Arc::new(compiled)))
    }

    /// Decides one request. For several requests of one caller, use [`Authorizer::subject`].
    pub fn decide(
        &self,
        principal: &Principal<'_>,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Decision {
        self.subject(principal).decide(action, resource, arguments)
    }

    /// The policies that decide a request, each by its name and its text: those that permit it, or those that forbid it.
    pub fn determining(
        &self,
        principal: &Principal<'_>,
        action: Action,
        resource: &Resource<'_>,
        arguments: Option<&Map<String, Value>>,
    ) -> Vec<(String, String)> {
        let Ok(response) = self.subject(principal).response(action, resource, arguments) else {
            return Vec::new();
        };
        let mut names: Vec<_> = response.diagnostics().reason().collect();
        names.sort_by_key(|id| order(id.as_ref()));
        let text =
            |id: &PolicyId| self.0.policies.set.policy(id).map(ToString::to_string).unwrap_or_default();
        names.into_iter().map(|id| (self.0.policies.name(id).to_owned(), text(id))).collect()
    }

    /// Why a request is denied, for the author of the policies, by the names that the document has for them.
    pub fn explained(&self, denial: &Denial) -> String {
        let Denial::Failed { policy, at, is_missing } = denial else { return denial.to_string() };
        let name = self.0.policies.name(&PolicyId::new(policy)).to_owned();
        let named = Denial::Failed { policy: name, at: at.clone(), is_missing: *is_missing }.to_string();
        match at.as_deref().filter(|_| *is_missing).and_then(|at| at.rsplit_once('.')) {
            Some((thing, attribute)) => format!(
                "{named}: this request has none, so what the policy decides is unknown; write {thing} has {attribute} && ..."
            ),
            None => named,
        }
    }

    /// Whether a policy reads arguments. If not, requests can be decided without.
    pub fn reads_arguments(&self) -> bool {
        !self.0.reads.is_empty()
    }

    /// Whether a policy reads this argument.
    pub fn reads_argument(&self, name: &str) -> bool {
        self.0.reads.reads_argument(name)
    }

    /// Whether a policy reads hints of tools.
    pub fn reads_hints(&self) -> bool {
        self.0.reads.hints
    }

    /// A caller. What decisions need of them is computed once for any number of decisions.
    pub fn subject(&self, principal: &Principal<'_>) -> Subject {
        Subject::new(self.0.clone(), principal)
    }
}
