//! The groups of a caller.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The claims in which common issuers put groups, in the order in which they are tried.
const USUAL: [&str; 3] = ["groups", "roles", "cognito:groups"];

/// Groups and roles.
///
/// The first claim that is a list is used, even if it is empty. Items that are not strings are ignored.
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
    // The dots in a name are not always a path: https://app.example/roles.
    let value = claims.get(claim).or_else(|| nested(claims, claim))?;
    value.as_array()
}

fn nested<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (parent, name) = path.rsplit_once('.')?;
    let fields = parent.split('.').try_fold(claims, |fields, name| fields.get(name)?.as_object())?;
    fields.get(name)
}
