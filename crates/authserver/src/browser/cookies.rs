//! Cookies (RFC 6265).

use http::{HeaderMap, HeaderValue, header};

use crate::limits;

/// The cookies of a request.
pub(crate) struct Cookies {
    browser: Option<String>,
    approvals: Option<String>,
    user: Option<String>,
}

const BROWSER: &str = "skep-login-browser";
const APPROVALS: &str = "skep-login-approvals";
const USER: &str = "skep-login-user";

/// The name of a cookie. With the prefix, a browser accepts it from this host only, and encrypted.
fn full_name(name: &str, is_secure: bool) -> String {
    if is_secure { format!("__Host-{name}") } else { name.to_owned() }
}

impl Cookies {
    pub(crate) fn parse(headers: &HeaderMap, is_secure: bool) -> Self {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs: Vec<(&str, &str)> = values
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .collect();
        let value = |name: &str| {
            let name = full_name(name, is_secure);
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Self { browser: value(BROWSER), approvals: value(APPROVALS), user: value(USER) }
    }

    /// The id of the browser.
    pub(crate) fn browser(&self) -> Option<&str> {
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        self.browser.as_deref().filter(|id| id.len() == 43 && id.bytes().all(is_id))
    }

    pub(crate) fn approvals(&self) -> &str {
        self.approvals.as_deref().unwrap_or_default()
    }
}

impl Cookies {
    pub(crate) fn user(&self) -> &str {
        self.user.as_deref().unwrap_or_default()
    }
}

/// The header that sets who has logged in in a browser.
pub(crate) fn set_user(user: &str, is_secure: bool) -> Option<HeaderValue> {
    set(USER, user, is_secure)
}

/// The header that sets the id of a browser.
pub(crate) fn set_browser(id: &str, is_secure: bool) -> Option<HeaderValue> {
    set(BROWSER, id, is_secure)
}

/// The header that sets its approvals.
pub(crate) fn set_approvals(approvals: &str, is_secure: bool) -> Option<HeaderValue> {
    set(APPROVALS, approvals, is_secure)
}

/// A cookie is sent when another site leads the browser here, as an upstream does, and never with requests that a page of
/// another site makes (`Lax`).
fn set(name: &str, value: &str, is_secure: bool) -> Option<HeaderValue> {
    let (name, life) = (full_name(name, is_secure), limits::BROWSER_LIFE.as_secs());
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{secure}");
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
