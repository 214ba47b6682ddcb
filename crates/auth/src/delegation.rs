//! Delegation: the parties that act for a token's subject (RFC 8693, section 4.1).

use serde_json::{Map, Value};

use crate::{identity::INTERNAL, limits};

/// The parties that act for the subject of a token, starting with the one that presents it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delegation {
    /// The parties, up to a limit.
    pub actors: Vec<Actor>,
    /// The number of parties beyond the limit.
    pub more: usize,
    /// Whether a part of the claim is malformed. The parties after it are unknown.
    pub malformed: bool,
}

/// A party that acts for another.
#[derive(Clone, PartialEq)]
pub struct Actor {
    /// Its subject, if the token has one.
    pub subject: Option<String>,
    /// Its other claims.
    pub claims: Map<String, Value>,
}

impl Delegation {
    /// The delegation in an `act` claim. It is empty without the claim.
    pub(crate) fn of(act: Option<&Value>) -> Self {
        let mut delegation = Self::default();
        let mut next = act.filter(|act| !act.is_null());
        while let Some(act) = next {
            let Some(act) = act.as_object() else {
                delegation.malformed = true;
                break;
            };
            if delegation.actors.len() < limits::ACTORS {
                delegation.actors.push(Actor::of(act));
            } else {
                delegation.more += 1;
            }
            next = act.get("act").filter(|act| !act.is_null());
        }
        delegation
    }

    /// The claims of the parties, of the first `most`, as JSON. Nothing without a delegation.
    pub fn description(&self, most: usize) -> Option<Value> {
        let actors = self.actors.iter().take(most).map(|actor| {
            let mut claims = actor.claims.clone();
            if let Some(subject) = &actor.subject {
                claims.insert("sub".into(), subject.as_str().into());
            }
            Value::Object(claims)
        });
        let actors: Vec<_> = actors.collect();
        (!actors.is_empty()).then(|| actors.into())
    }
}

impl Actor {
    fn of(act: &Map<String, Value>) -> Self {
        let subject = act.get("sub").and_then(Value::as_str).map(str::to_owned);
        // A subject that is not a string stays visible among the other claims.
        let is_public = |key: &str| key != "act" && key != INTERNAL && !(key == "sub" && subject.is_some());
        let claims =
            act.iter().filter(|(key, _)| is_public(key)).map(|(key, value)| (key.clone(), value.clone()));
        Self { claims: claims.collect(), subject }
    }
}

/// Claims are for decisions and audit records, not for logs.
impl std::fmt::Debug for Actor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Actor").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actors_are_listed_starting_with_the_one_that_presents_the_token() {
        assert_eq!(Delegation::of(None), Delegation::default());
        assert_eq!(Delegation::of(Some(&Value::Null)), Delegation::default());
        let act = json!({"sub": "agent", "client_id": "c", "tsid": "t", "act": {"sub": 7, "act": "odd"}});
        let actor = |subject: Option<&str>, claims: Value| Actor {
            subject: subject.map(str::to_owned),
            claims: claims.as_object().unwrap().clone(),
        };
        let expected = Delegation {
            actors: vec![actor(Some("agent"), json!({"client_id": "c"})), actor(None, json!({"sub": 7}))],
            more: 0,
            malformed: true,
        };
        assert_eq!(Delegation::of(Some(&act)), expected);
    }

    #[test]
    fn a_long_chain_is_truncated_and_counted() {
        let chain = (0..13)
            .fold(json!({"sub": "first"}), |act, number| json!({"sub": number.to_string(), "act": act}));
        let delegation = Delegation::of(Some(&chain));
        assert_eq!((delegation.actors.len(), delegation.more, delegation.malformed), (10, 4, false));
        assert_eq!(delegation.actors[0].subject.as_deref(), Some("12"));
    }
}
