//! On whose behalf a caller acts (RFC 8693, section 4.1).

use serde_json::{Map, Value};

use crate::{identity::INTERNAL, limits};

/// The parties that act for the subject of a token, the one that presents it first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delegation {
    /// The parties, as many as are told one by one.
    pub actors: Vec<Actor>,
    /// How many more there are.
    pub more: usize,
    /// Whether some part of it was not what it should be. What comes after that part is not known.
    pub malformed: bool,
}

/// A party that acts for another.
#[derive(Clone, PartialEq)]
pub struct Actor {
    /// Who it is, if the token says so.
    pub subject: Option<String>,
    /// What else the token says of it.
    pub claims: Map<String, Value>,
}

impl Delegation {
    /// The delegation that an `act` claim tells. Without the claim there is none.
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
}

impl Actor {
    fn of(act: &Map<String, Value>) -> Self {
        let subject = act.get("sub").and_then(Value::as_str).map(str::to_owned);
        // A subject that is no text stays visible among the rest.
        let told = |key: &str| key != "act" && key != INTERNAL && !(key == "sub" && subject.is_some());
        let claims = act.iter().filter(|(key, _)| told(key)).map(|(key, value)| (key.clone(), value.clone()));
        Self { claims: claims.collect(), subject }
    }
}

/// Claims are for decisions and records, not for logs.
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
    fn those_who_act_are_told_from_the_one_that_presents_the_token_on() {
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
    fn a_long_chain_is_cut_and_counted() {
        let chain = (0..13)
            .fold(json!({"sub": "first"}), |act, number| json!({"sub": number.to_string(), "act": act}));
        let delegation = Delegation::of(Some(&chain));
        assert_eq!((delegation.actors.len(), delegation.more, delegation.malformed), (10, 4, false));
        assert_eq!(delegation.actors[0].subject.as_deref(), Some("12"));
    }
}
