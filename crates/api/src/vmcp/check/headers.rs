//! Headers of clients that are passed on.

use skep_config::{FieldError, FieldPath, headers::is_reserved};

/// Headers of the protocol, credentials, and what else the virtual server sets beside what every proxy does.
const OWN: [&str; 11] = [
    "accept",
    "accept-encoding",
    "authorization",
    "content-encoding",
    "content-type",
    "cookie",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// A client could claim with any of these to come from elsewhere.
const FORWARDED: &str = "x-forwarded-";

pub(super) fn errors(names: &[String]) -> Vec<FieldError> {
    let is_token = |name: &str| {
        let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !name.is_empty() && name.bytes().all(is_tchar)
    };
    let wrong = |name: &String| match name.to_ascii_lowercase() {
        lower if OWN.contains(&&*lower) || lower.starts_with(FORWARDED) || is_reserved(name) => {
            Some("cannot be passed on")
        }
        _ if !is_token(name) => Some("is not the name of a header"),
        _ => None,
    };
    let each = names.iter().enumerate().filter_map(|(index, name)| {
        let field = FieldPath::from("passthroughHeaders").index(index);
        Some(FieldError::new(field, format!("{name:?} {}", wrong(name)?)))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_and_credentials_are_not_passed_on() {
        let fields = |names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            errors(&names).iter().map(|error| error.field.to_string()).collect()
        };
        assert_eq!(fields(&["X-Tenant"]), [] as [&str; 0]);
        for name in ["Host", "x-forwarded-for", "X-Forwarded-Port", "Authorization", "cookie", "a b", ""] {
            assert_eq!(fields(&[name]), ["passthroughHeaders[0]"], "{name}");
        }
        assert_eq!(fields(&["TE", "X-Tenant", ""]), ["passthroughHeaders[0]", "passthroughHeaders[2]"]);
    }
}
