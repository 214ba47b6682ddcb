//! Selecting objects on the command line.

use std::{fmt, str::FromStr};

use skep_world::Target;

/// The name of an object, optionally with its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectSelector {
    kind: Option<String>,
    name: String,
}

impl ObjectSelector {
    /// Whether the object is selected.
    pub(super) fn matches(&self, target: &Target) -> bool {
        let is_kind = |kind: &String| {
            [target.kind.kind, target.kind.plural].into_iter().any(|known| known.eq_ignore_ascii_case(kind))
        };
        *self.name == *target.name && self.kind.as_ref().is_none_or(is_kind)
    }
}

impl FromStr for ObjectSelector {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (Some(kind.to_owned()), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || kind.as_deref() == Some("") {
            return Err("write NAME, or KIND/NAME such as MCPServer/fetch");
        }
        Ok(Self { kind, name: name.into() })
    }
}

impl fmt::Display for ObjectSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{kind}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_api::kinds::MCPServer;
    use skep_operator::resources::kind_of;

    #[test]
    fn an_object_is_selected_by_its_name_and_by_its_kind_in_any_case_and_number() {
        let target =
            Target { kind: kind_of::<MCPServer>(), namespace: "default".into(), name: "fetch".into() };
        let is = |text: &str| text.parse::<ObjectSelector>().map(|selector| selector.matches(&target));
        assert!(
            ["fetch", "MCPServer/fetch", "mcpservers/fetch"].into_iter().all(|text| is(text) == Ok(true))
        );
        assert!(["other", "MCPGroup/fetch", "mcpserver/x"].into_iter().all(|text| is(text) == Ok(false)));
        assert!(["", "a/", "/b", "a/b/c"].into_iter().all(|text| is(text).is_err()));
    }
}
