//! Scopes (RFC 6749, section 3.3).

/// The scopes of a parameter, each once.
pub(crate) fn scopes(text: &str) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in text.split(' ').filter(|scope| !scope.is_empty()) {
        if scopes.iter().all(|known| known != scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

/// Whether every requested scope is an allowed one. None may be added by a refresh (RFC 6749, section 6).
pub(crate) fn is_within(requested: &[String], allowed: &[String]) -> bool {
    requested.iter().all(|scope| allowed.contains(scope))
}
