//! Delegation: who acts for whom (RFC 8693, section 4).

use serde_json::{Value, json};

use crate::{keys::Claims, limits};

/// Why a chain of actors is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ActorError(pub(crate) &'static str);

/// Whether a token is an ID token, which proves a login to one client and grants nothing (RFC 8725, section 3.11).
pub(crate) fn is_id_token(claims: &Claims) -> bool {
    ["nonce", "at_hash", "c_hash", "s_hash"].iter().any(|name| claims.contains_key(*name))
}

/// The claim `act` of a new token: the current actor, and inside it the former ones (RFC 8693, section 4.1).
pub(crate) fn actor_chain(issuer: &str, actor: &str, former: Option<&Value>) -> Result<Value, ActorError> {
    let mut chain = json!({"iss": issuer, "sub": actor});
    if let Some(former) = former {
        let mut depth = 1;
        let mut next = Some(former);
        while let Some(actor) = next {
            let Some(object) = actor.as_object() else {
                return Err(ActorError("an actor must be an object"));
            };
            depth += 1;
            next = object.get("act");
        }
        if depth > limits::ACTORS {
            return Err(ActorError("there are too many actors"));
        }
        chain["act"] = former.clone();
    }
    if chain.to_string().len() > limits::ACTORS_SIZE {
        return Err(ActorError("the actors are too long"));
    }
    Ok(chain)
}

/// Whether a token of another issuer lets a client of this server act for its subject (RFC 8693, section 4.4). The client
/// must be named with its issuer: the same id means another client elsewhere. `None`: it names no client.
pub(crate) fn may_act(claims: &Claims, issuer: &str, client: &str) -> Option<Result<bool, ActorError>> {
    let allowed = claims.get("may_act")?;
    let text = |name: &str| allowed.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    Some(match (text("iss"), text("sub")) {
        (Some(named), Some(actor)) if named == issuer => Ok(actor == client),
        _ => Err(ActorError("may_act must name a client of this server")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_actors_are_kept_inside_the_current_one() {
        let first = actor_chain("as", "a", None).unwrap();
        let second = actor_chain("as", "b", Some(&first)).unwrap();
        assert_eq!(second, json!({"iss": "as", "sub": "b", "act": {"iss": "as", "sub": "a"}}));
        assert!(actor_chain("as", "a", Some(&json!("text"))).is_err());
        let mut deep = first;
        for _ in 0..limits::ACTORS - 1 {
            deep = actor_chain("as", "a", Some(&deep)).unwrap();
        }
        assert!(actor_chain("as", "a", Some(&deep)).is_err());
        assert!(actor_chain("as", "a", Some(&json!({"sub": "x".repeat(limits::ACTORS_SIZE)}))).is_err());
    }

    #[test]
    fn a_client_may_act_if_it_is_named_with_its_issuer() {
        let answer = |value: Value| {
            may_act(json!({"may_act": value}).as_object().unwrap(), "as", "agent").unwrap().map_err(|_| ())
        };
        assert_eq!(answer(json!({"iss": "as", "sub": "agent"})), Ok(true));
        assert_eq!(answer(json!({"iss": "as", "sub": "other"})), Ok(false));
        for wrong in
            [json!({}), json!("agent"), json!({"sub": "agent"}), json!({"iss": "else", "sub": "agent"})]
        {
            assert_eq!(answer(wrong.clone()), Err(()), "{wrong}");
        }
    }
}
