//! Warnings about policies that can be enforced but are likely mistakes.
//!
//! Warnings follow from the text of a policy alone: names that no request has, and comparisons that are never true. A
//! policy without a warning may still differ from what its author intended.

mod condition;
mod test;

use cedar_policy::{Effect, EntityTypeName};
use serde_json::Value;

use crate::{Feature, entities::Entities, policies::Policies, size};
use condition::Condition;
use test::{Target, Test, Variable};

/// A likely mistake in a document that can be enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    path: String,
    text: String,
}

impl Warning {
    /// The path in the settings, such as `policies[2]`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// The names that a policy may use.
pub(crate) struct Vocabulary<'a> {
    entities: &'a Entities,
    group: String,
}

/// All warnings, in the order of the policies.
pub(crate) fn warnings(policies: &Policies, entities: &Entities, group: &EntityTypeName) -> Vec<Warning> {
    let vocabulary = Vocabulary { entities, group: group.to_string() };
    let mut warnings = Vec::new();
    if policies.iter().all(|(_, policy)| policy.effect() == Effect::Forbid) {
        let text = "none of them permits anything, so everything is denied".into();
        warnings.push(Warning { path: "policies".into(), text });
    }
    for (path, policy) in policies.iter() {
        let texts = size::with_stack(policies.steps, || {
            policy.to_json().map(|json| of_policy(&json, &vocabulary)).unwrap_or_default()
        });
        warnings.extend(texts.into_iter().map(|text| Warning { path: path.clone(), text }));
    }
    warnings
}

fn of_policy(policy: &Value, vocabulary: &Vocabulary<'_>) -> Vec<String> {
    let scope: Vec<Test> =
        Variable::ALL.iter().flat_map(|variable| Test::in_scope(*variable, policy)).collect();
    let mut texts: Vec<String> = scope.iter().filter_map(|test| test.warning(vocabulary)).collect();
    texts.extend(mismatch(&scope));
    let mut condition = Condition::default();
    condition.visit(&policy["conditions"]);
    texts.extend(condition.warnings(vocabulary));
    let mut seen = std::collections::HashSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    texts
}

/// A scope whose actions do not apply to its type of resource.
fn mismatch(scope: &[Test]) -> Option<String> {
    let feature_of = |test: &Test| {
        let type_ = test.exact_type()?;
        Feature::ALL.into_iter().find(|feature| feature.entity_type() == type_)
    };
    let on = |variable: Variable| scope.iter().filter(move |test| test.variable == variable);
    let resource = on(Variable::Resource).find_map(feature_of)?;
    let mut actions = on(Variable::Action).filter_map(|test| match &test.target {
        Target::Entity { id, .. } => {
            Feature::ALL.into_iter().map(Feature::action).find(|action| action.as_str() == id)
        }
        Target::Type(_) => None,
    });
    let first = actions.next()?;
    let fits = first.feature() == resource || actions.any(|action| action.feature() == resource);
    (!fits).then(|| {
        let done_to = first.feature().entity_type();
        let (action, type_) = (first.as_str(), resource.entity_type());
        format!("it never applies: {action} acts on a {done_to}, not on a {type_}")
    })
}
