//! What policies read: an argument that none of them names is not computed, and an entity that none can get to is not given to
//! Cedar.
//!
//! A caller may send a million arguments. The work for them must depend on the policies, not on the caller.

use std::collections::BTreeSet;

use cedar_policy::EntityUid;
use serde_json::{Map, Value};

use crate::{Error, Hints, entities::collect_named, policies::Policies, size};

/// The prefix of attributes for arguments.
pub(crate) const PREFIX: &str = "arg_";
/// The suffix of the attribute for the presence of an argument.
pub(crate) const PRESENT: &str = "_present";

/// What policies read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// The attributes for arguments, without [`PREFIX`].
    pub(crate) names: BTreeSet<String>,
    /// Whether a policy uses the context as a whole, for example compares it.
    pub(crate) all: bool,
    /// Whether a policy reads an argument as an attribute of anything but the context.
    pub(crate) of_resource: bool,
    /// Whether a policy reads an attribute with the name of a hint.
    pub(crate) hints: bool,
    /// The entities that conditions name, whose attributes and parents they can read.
    pub(crate) entities: Vec<EntityUid>,
}

impl Reads {
    pub(crate) fn of(policies: &Policies) -> Result<Self, Error> {
        let mut reads = Self::default();
        for (path, policy) in policies.iter() {
            // Cedar's encoder is recursive, and so is the visit of what it encodes.
            size::with_stack(policies.steps, || {
                let policy = policy.to_json().map_err(|error| Error::new(&path, error.to_string()))?;
                reads.visit(&policy["conditions"]);
                collect_named(&policy["conditions"], &mut reads.entities);
                Ok(())
            })?;
        }
        Ok(reads)
    }

    /// Whether this argument is read, or whether it is present.
    pub(crate) fn reads_argument(&self, name: &str) -> bool {
        let is_its_presence = |read: &String| read.strip_suffix(PRESENT) == Some(name);
        self.all || self.names.contains(name) || self.names.iter().any(is_its_presence)
    }

    /// Whether no argument is read.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.all
    }

    /// Visits an expression in Cedar's JSON format.
    fn visit(&mut self, expression: &Value) {
        match expression {
            Value::Object(node) => {
                self.all |= node.get("Var").is_some_and(|name| name == "context");
                for (operator, operand) in node {
                    match operand {
                        Value::Object(access) if matches!(operator.as_str(), "." | "has") => {
                            self.access(access)
                        }
                        other => self.visit(other),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.visit(item)),
            _ => {}
        }
    }

    fn access(&mut self, access: &Map<String, Value>) {
        let attribute = access.get("attr").and_then(Value::as_str);
        self.hints |= attribute.is_some_and(|name| Hints::NAMES.contains(&name));
        let name = attribute.and_then(|name| name.strip_prefix(PREFIX));
        let left = access.get("left").unwrap_or(&Value::Null);
        let variable = left.get("Var");
        self.of_resource |= name.is_some() && variable.is_none_or(|variable| variable != "context");
        self.names.extend(name.map(str::to_owned));
        // An attribute of the context is read, and not the context.
        if variable.is_none() {
            self.visit(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(policy: &str) -> (Vec<String>, bool) {
        let reads = Reads::of(&Policies::parse(&[policy.to_owned()]).unwrap()).unwrap();
        (reads.names.into_iter().collect(), reads.all)
    }

    #[test]
    fn attributes_are_found_wherever_they_are_named() {
        let names = |text: &str| {
            let (names, all) = reads(&format!("permit(principal, action, resource) when {{ {text} }};"));
            assert!(!all, "{text}");
            names.join(" ")
        };
        assert_eq!(names("context.arg_path like \"/tmp/*\""), "path");
        assert_eq!(names("resource.arg_a == 1 && !(context has arg_b_present)"), "a b_present");
        assert_eq!(names("context[\"arg_x y\"] == 1 || context has \"arg_\\u{61}\""), "a x y");
        assert_eq!(
            names("if context.arg_a then [context.arg_b].contains(1) else resource.name == \"arg_c\""),
            "a b"
        );
        assert_eq!(names("principal.claim_sub == \"x\""), "");
    }

    #[test]
    fn arguments_of_the_context_alone_differ_from_those_of_the_resource() {
        let of_resource = |text: &str| {
            let policy = format!("permit(principal, action, resource) when {{ {text} }};");
            Reads::of(&Policies::parse(&[policy]).unwrap()).unwrap().of_resource
        };
        for text in
            ["context.arg_a == 1", "context has arg_a", "resource.name == context.arg_a", "context == {}"]
        {
            assert!(!of_resource(text), "{text}");
        }
        for text in
            ["resource.arg_a == 1", "resource has arg_a", "{r: resource}.r.arg_a", "Tool::\"a\".arg_a"]
        {
            assert!(of_resource(text), "{text}");
        }
    }

    #[test]
    fn a_hint_is_read_wherever_it_is_named() {
        let reads_hints = |text: &str| {
            let policy = format!("permit(principal, action, resource) when {{ {text} }};");
            Reads::of(&Policies::parse(&[policy]).unwrap()).unwrap().hints
        };
        for text in [
            "resource.readOnlyHint",
            "resource has destructiveHint && resource.destructiveHint",
            "!(resource has \"idempotentHint\")",
            "{r: resource}.r[\"openWorldHint\"]",
        ] {
            assert!(reads_hints(text), "{text}");
        }
        for text in ["resource.name == \"readOnlyHint\"", "context has arg_readOnlyHint", "true"] {
            assert!(!reads_hints(text), "{text}");
        }
    }

    #[test]
    fn an_argument_is_read_by_its_name_or_its_presence_or_with_all() {
        let reads_argument = |text: &str, name: &str| {
            let policy = format!("permit(principal, action, resource) when {{ {text} }};");
            Reads::of(&Policies::parse(&[policy]).unwrap()).unwrap().reads_argument(name)
        };
        assert!(reads_argument("context.arg_a == 1", "a") && !reads_argument("context.arg_a == 1", "b"));
        for name in ["a", "a_present"] {
            assert!(reads_argument("context has arg_a_present", name), "{name}");
        }
        assert!(reads_argument("context == {}", "anything"));
    }

    #[test]
    fn a_policy_that_uses_the_whole_context_reads_all_arguments() {
        let (_, all) = reads("permit(principal, action, resource) when { context == {arg_a: 1} };");
        assert!(all);
        let (_, all) = reads("permit(principal, action, resource) when { {c: context}.c.arg_a == 1 };");
        assert!(all);
        let (_, all) = reads("permit(principal, action, resource);");
        assert!(!all);
    }
}
