//! The claims of a token as attributes.

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};

use crate::{attributes::Attributes, value::value};

/// Each claim as `claim_<name>`, and those that have several values as `claimset_<name>` too.
pub(crate) fn claims(claims: &Map<String, Value>, multi_valued: &[String]) -> Attributes {
    let mut attributes = Attributes::new();
    for (name, claim) in claims {
        let several = multi_valued.contains(name).then(|| Several::of(claim)).flatten();
        if let Some(several) = several {
            attributes.insert(format!("claim_{name}"), RestrictedExpression::new_string(several.joined));
            attributes.insert(format!("claimset_{name}"), several.set);
        } else if let Some(value) = value(claim) {
            attributes.insert(format!("claim_{name}"), value);
        }
    }
    attributes
}

/// A claim with several values. Issuers differ: OAuth's `scope` is a string with spaces, others write a list.
struct Several {
    joined: String,
    set: RestrictedExpression,
}

impl Several {
    fn of(claim: &Value) -> Option<Self> {
        match claim {
            Value::Array(items) => {
                let texts: Vec<_> = items.iter().filter_map(Value::as_str).collect();
                Some(Self { joined: texts.join(" "), set: value(claim)? })
            }
            Value::String(text) => {
                let words = text.split_whitespace().map(|word| RestrictedExpression::new_string(word.into()));
                Some(Self { joined: text.clone(), set: RestrictedExpression::new_set(words) })
            }
            _ => None,
        }
    }
}
