//! Tests of principal, action and resource: `action == Action::"call_tool"`, in the scope of a policy or in a
//! condition.

use cedar_policy::EntityUid;
use serde_json::Value;

use super::Vocabulary;
use crate::{
    Feature,
    entities::{type_name, uid},
};

/// The variables of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    Principal,
    Action,
    Resource,
    Context,
}

impl Variable {
    pub(super) const ALL: [Self; 4] = [Self::Principal, Self::Action, Self::Resource, Self::Context];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Principal => "principal",
            Self::Action => "action",
            Self::Resource => "resource",
            Self::Context => "context",
        }
    }

    /// The variable that an expression is.
    pub(super) fn of(expression: &Value) -> Option<Self> {
        let name = expression.get("Var")?.as_str()?;
        Self::ALL.into_iter().find(|variable| variable.as_str() == name)
    }

    /// The types of its values.
    pub(super) fn types(self) -> &'static [&'static str] {
        match self {
            Self::Principal => &["Client", "Workflow"],
            Self::Action => &["Action"],
            Self::Resource => &["Tool", "Prompt", "Resource"],
            Self::Context => &[],
        }
    }
}

/// What a variable is compared with.
pub(super) enum Target {
    Entity { type_: String, id: String },
    Type(String),
}

/// A test of a variable.
pub(super) struct Test {
    pub(super) variable: Variable,
    /// Whether descendants of the target match, too.
    within: bool,
    pub(super) target: Target,
}

impl Test {
    /// The tests of a variable in the scope of a policy.
    pub(super) fn in_scope(variable: Variable, policy: &Value) -> Vec<Self> {
        let scope = &policy[variable.as_str()];
        let within = scope["op"] == "in";
        let one = |entity: &Value, within| Some(Self { variable, within, target: entity_of(entity)? });
        let mut tests = Vec::new();
        tests.extend(one(&scope["entity"], within));
        tests.extend(
            scope["entities"].as_array().into_iter().flatten().filter_map(|entity| one(entity, within)),
        );
        tests.extend(one(&scope["in"]["entity"], true));
        let type_ = scope["entity_type"].as_str().map(|type_| Target::Type(type_.into()));
        tests.extend(type_.map(|target| Self { variable, within: false, target }));
        tests
    }

    /// The tests in an operation of a condition.
    pub(super) fn in_condition(operator: &str, operands: &Value) -> Vec<Self> {
        let (left, right) = (&operands["left"], &operands["right"]);
        let within = operator == "in";
        let (variable, other) = match (operator, Variable::of(left), Variable::of(right)) {
            ("==" | "!=" | "in" | "is", Some(variable), _) => (variable, right),
            ("==" | "!=", None, Some(variable)) => (variable, left),
            _ => return Vec::new(),
        };
        let one = |value: &Value| {
            Some(Self { variable, within, target: entity_of(value.get("Value")?.get("__entity")?)? })
        };
        let mut tests: Vec<_> = one(other).into_iter().collect();
        tests.extend(other["Set"].as_array().into_iter().flatten().filter_map(one));
        let type_ = operands["entity_type"].as_str().map(|type_| Target::Type(type_.into()));
        tests.extend(type_.map(|target| Self { variable, within: false, target }));
        tests
    }

    /// The type that the variable must have.
    pub(super) fn exact_type(&self) -> Option<&str> {
        match &self.target {
            Target::Type(type_) => Some(type_),
            Target::Entity { type_, .. } => (!self.within).then_some(type_),
        }
    }

    /// Why the test is never true, if so.
    pub(super) fn warning(&self, vocabulary: &Vocabulary<'_>) -> Option<String> {
        let known = |type_: &str| self.variable.types().contains(&type_);
        match &self.target {
            Target::Type(type_) => (!known(type_)).then(|| self.wrong_type(type_)),
            Target::Entity { type_, id } => {
                let (is_known, uid) = (known(type_), entity(type_, id));
                let has_members = || uid.as_ref().is_none_or(|uid| vocabulary.entities.has_members(uid));
                let shown = format!("{type_}::{id:?}");
                match self.variable {
                    Variable::Action if is_known && is_action(id) => None,
                    Variable::Action if self.within && has_members() => None,
                    Variable::Action => Some(inert(&shown, id)),
                    _ if is_known => None,
                    _ if !self.within => Some(self.wrong_type(type_)),
                    Variable::Principal if *type_ == vocabulary.group => None,
                    // Resources of a virtual server are also in the backend that they come from.
                    Variable::Resource if type_ == "MCP" || type_ == "Backend" => None,
                    _ if has_members() => None,
                    Variable::Principal => {
                        let group = &vocabulary.group;
                        Some(format!("no caller is in {shown}: callers are in {group}::\"…\""))
                    }
                    _ => Some(format!("no resource is in {shown}: resources are in MCP::\"<server>\"")),
                }
            }
        }
    }

    fn wrong_type(&self, type_: &str) -> String {
        let (variable, types) = (self.variable.as_str(), self.variable.types());
        // Only few virtual servers have workflows.
        let usual: Vec<&str> = types.iter().copied().filter(|type_| *type_ != "Workflow").collect();
        format!("the {variable} is never a {type_}: use {}", usual.join(", "))
    }
}

fn inert(shown: &str, id: &str) -> String {
    let listed = Feature::ALL.into_iter().find(|feature| id == format!("list_{}s", feature.as_str()));
    match listed {
        Some(feature) => {
            let action = feature.action().as_str();
            format!(
                "{shown} never occurs in a request: a list shows the items that {action} is permitted for"
            )
        }
        None => format!("{shown} never occurs in a request: use call_tool, get_prompt or read_resource"),
    }
}

fn is_action(id: &str) -> bool {
    Feature::ALL.into_iter().any(|feature| feature.action().as_str() == id)
}

fn entity(type_: &str, id: &str) -> Option<EntityUid> {
    Some(uid(&type_name(type_)?, id))
}

fn entity_of(entity: &Value) -> Option<Target> {
    let text = |key: &str| Some(entity.get(key)?.as_str()?.to_owned());
    Some(Target::Entity { type_: text("type")?, id: text("id")? })
}
