//! The groups of a caller.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Claims that hold groups at one issuer or another, in the order in which they are tried.
const USUAL: [&str; 3] = ["groups", "roles", "cognito:groups"];

/// Groups and roles.
///
/// The first claim that holds a list counts, also if the list is empty. Items that are not text name no group.
pub(crate) fn groups<'a>(
    claims: &'a Map<String, Value>,
    group_claim: &str,
    role_claim: &str,
) -> BTreeSet<&'a str> {
    let groups = [group_claim].into_iter().chain(USUAL).find_map(|claim| list(claims, claim));
    let roles = list(claims, role_claim);
    groups.into_iter().chain(roles).flatten().filter_map(Value::as_str).collect()
}

fn list<'a>(claims: &'a Map<String, Value>, claim: &str) -> Option<&'a Vec<Value>> {
    // A name may have dots that are no path: https://app.example/roles.
    let found = claims.get(claim).or_else(|| nested(claims, claim))?;
    found.as_array()
}

fn nested<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (parent, name) = path.rsplit_once('.')?;
    let fields = parent.split('.').try_fold(claims, |fields, name| fields.get(name)?.as_object())?;
    fields.get(name)
}
