//! The bearer token of a request.

use http::{HeaderMap, header};

use crate::{AuthenticationError, limits};

/// The token that a request carries.
///
/// A second `Authorization` header is an error: two readers could use different ones. The scheme may be in any
/// case (RFC 9110, section 11.1).
pub fn bearer(headers: &HeaderMap) -> Result<&str, AuthenticationError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err(AuthenticationError::Request("the request has no token"));
    };
    if values.next().is_some() {
        return Err(AuthenticationError::Request("the request has more than one Authorization header"));
    }
    let malformed = AuthenticationError::Request("the Authorization header must be Bearer and a token");
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(malformed)?;
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || !token.bytes().all(fits) {
        return Err(malformed);
    }
    if token.len() > limits::TOKEN {
        return Err(AuthenticationError::Request("the token is too long"));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_exactly_one_token() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(str::to_owned).ok()
        };
        assert_eq!(read(&["Bearer a.b.c"]).as_deref(), Some("a.b.c"));
        assert_eq!(read(&["bearer a.b.c"]).as_deref(), Some("a.b.c"));
        let long = format!("Bearer {}", "a".repeat(limits::TOKEN + 1));
        for wrong in [
            vec![],
            vec!["Bearer a", "Bearer a"],
            vec!["Bearer a", "Basic a"],
            vec!["Basic YTpi"],
            vec!["Bearer"],
            vec!["Bearer "],
            vec!["Bearer  a"],
            vec!["Bearer a b"],
            vec!["Bearer a,Bearer b"],
            vec!["Bearera"],
            vec![&long],
        ] {
            assert_eq!(read(&wrong), None, "{wrong:.60?}");
        }
    }
}
