//! The policies of a document, parsed.

use std::{collections::HashMap, str::FromStr};

use cedar_policy::{ParseError, ParseErrors, Policy, PolicyId, PolicySet};
use miette::Diagnostic;

use crate::{
    Error,
    place::{Place, short},
    size,
};

/// How much of the parser's message is quoted. It lists everything that it would have accepted.
const WORDS: usize = 160;
/// How much of a policy's own name is quoted.
const NAME: usize = 100;

/// Policies, each with its position in the document.
pub(crate) struct Policies {
    pub(crate) set: PolicySet,
    /// What people call each of them.
    names: HashMap<PolicyId, String>,
    /// The largest number of operators in one of them.
    pub(crate) steps: usize,
}

impl Policies {
    /// Parses texts. Each may have several policies, like a Cedar file.
    pub(crate) fn parse(texts: &[String]) -> Result<Self, Error> {
        if texts.is_empty() {
            return Err(Error::new("policies", "write at least one policy: what none permits is denied"));
        }
        let (mut policies, mut names) = (Vec::with_capacity(texts.len()), HashMap::new());
        let mut most = 0;
        for (index, text) in texts.iter().enumerate() {
            let path = format!("policies[{index}]");
            let steps = size::steps(&path, text)?;
            let parsed = size::with_stack(steps, || parse_text(&path, index, text))?;
            names.extend(parsed.iter().map(|policy| (policy.id().clone(), name(policy, text))));
            policies.extend(parsed);
            most = most.max(steps);
        }
        let set =
            PolicySet::from_policies(policies).map_err(|error| Error::new("policies", error.to_string()))?;
        Ok(Self { set, names, steps: most })
    }

    /// What people call a policy: by its annotation `@id`, if it has one, and by its place in the document.
    pub(crate) fn name(&self, id: &PolicyId) -> &str {
        self.names.get(id).map(String::as_str).unwrap_or_default()
    }

    /// Each policy with the path of its text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, &Policy)> {
        self.set.policies().map(|policy| (path(policy), policy))
    }
}

fn parse_text(path: &str, index: usize, text: &str) -> Result<Vec<Policy>, Error> {
    let parsed = PolicySet::from_str(text).map_err(|errors| first(path, text, &errors))?;
    if parsed.num_of_templates() > 0 {
        let problem = "it is a template: replace ?principal and ?resource by entities";
        return Err(Error::new(path, problem));
    }
    match parsed.num_of_policies() {
        0 => Err(Error::new(path, "it has no policy: write one, or remove the item")),
        1 => Ok(parsed
            .policies()
            .map(|policy| policy.new_id(PolicyId::new(format!("policy{index}"))))
            .collect()),
        _ => {
            let numbered = parsed.policies().enumerate();
            Ok(numbered
                .map(|(part, policy)| policy.new_id(PolicyId::new(format!("policy{index}.{part}"))))
                .collect())
        }
    }
}

/// `policies[2]` for `policy2` and `policy2.1`.
fn path(policy: &Policy) -> String {
    let id: &str = policy.id().as_ref();
    let number = id.trim_start_matches("policy");
    match number.split_once('.') {
        Some((index, part)) => format!("policies[{index}], policy {part}"),
        None => format!("policies[{number}]"),
    }
}

/// What people call a policy of this text.
fn name(policy: &Policy, text: &str) -> String {
    let whole = path(policy);
    let start = policy.to_cedar().and_then(|source| text.find(source.trim()));
    let place = match (whole.split_once(','), start) {
        // One of several is found by its line.
        (Some((index, _)), Some(start)) => {
            format!("{index}, line {}", text[..start].matches('\n').count() + 1)
        }
        _ => whole,
    };
    match policy.annotation("id").map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => format!("{} ({place})", short(id, NAME)),
        None => place,
    }
}

/// The first error in the text.
fn first(path: &str, text: &str, errors: &ParseErrors) -> Error {
    let offset = |error: &ParseError| label(error).map_or(usize::MAX, |(offset, _)| offset);
    let Some(error) = errors.iter().min_by_key(|error| offset(error)) else {
        return Error::new(path, errors.to_string());
    };
    let mut words = error.to_string();
    let hint = label(error).and_then(|(_, hint)| hint).or_else(|| error.help().map(|help| help.to_string()));
    if let Some(hint) = hint {
        words = format!("{words}, {hint}");
    }
    let words = short(&words, WORDS);
    match label(error) {
        Some((offset, _)) => Error::new(path, format!("{}: {words}", Place::new(text, offset))),
        None => Error::new(path, words),
    }
}

fn label(error: &dyn Diagnostic) -> Option<(usize, Option<String>)> {
    let label = error.labels()?.next()?;
    Some((label.offset(), label.label().map(Into::into)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_called_by_its_id_and_its_place() {
        let texts = [
            "permit(principal, action, resource);".to_owned(),
            "@id(\"no deletes\")\nforbid(principal, action, resource == Tool::\"delete\");".to_owned(),
            "// two\npermit(principal == Client::\"a\", action, resource);\n\n@id(\"b\")\npermit(principal == Client::\"b\", action, resource);\n"
                .to_owned(),
        ];
        let policies = Policies::parse(&texts).unwrap();
        let mut names: Vec<&str> = policies.set.policies().map(|policy| policies.name(policy.id())).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["b (policies[2], line 4)", "no deletes (policies[1])", "policies[0]", "policies[2], line 2"]
        );
    }
}
