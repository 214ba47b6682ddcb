//! The browser of a user: what binds a login to it, and the page that asks the user.
//!
//! A browser has a random id in a cookie. The state of a login carries a keyed hash of that id, so that only the browser
//! that began a login can go on with it. Approvals are such hashes as well, in a second cookie: nothing about them is stored
//! here, and another browser cannot use them.

mod connections;
mod cookies;
mod page;
mod refusal;
mod sessions;
mod style;

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use skep_auth::counted_address;

use crate::{
    keys::OpaqueTokens,
    limits,
    random::{self, NoRandomness, is_same, tag},
    rules::without_loopback_port,
    store::{Pending, User},
};
pub(crate) use connections::{ConnectionForm, connections_page};
pub(crate) use cookies::{Cookies, set_approvals, set_browser, set_user};
pub(crate) use page::{Question, page};
pub(crate) use refusal::readable;
pub(crate) use sessions::{SessionItem, sessions_page};

/// The length of the random half of a state, and of a tag.
const HALF: usize = 22;

/// A browser.
pub(crate) struct Browser {
    /// Its id.
    pub(crate) id: String,
    /// Whether the cookie with the id must be set.
    pub(crate) is_new: bool,
    /// The approvals that it remembers.
    pub(crate) approvals: Vec<String>,
    /// Where it is, as far as limits are concerned.
    pub(crate) address: IpAddr,
    /// Who has logged in in it, as it says.
    user: String,
}

/// What a user approves.
pub(crate) struct Approval<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) scopes: &'a [String],
    pub(crate) resources: &'a [String],
    /// What the store wants approvals for the client to have.
    pub(crate) mark: &'a str,
}

impl<'a> Approval<'a> {
    pub(crate) fn of(pending: &'a Pending, mark: &'a str) -> Self {
        Self {
            client_id: &pending.client_id,
            redirect_uri: &pending.redirect_uri,
            scopes: &pending.scopes,
            resources: &pending.resources,
            mark,
        }
    }

    /// A tag for what is approved in a browser, by any of its users.
    fn tag(&self, key: &[u8], browser: &str) -> String {
        let (scopes, resources) = (self.scopes.join(" "), self.resources.join(" "));
        let redirect = without_loopback_port(self.redirect_uri);
        let parts = [browser, self.client_id, &redirect, &scopes, &resources, self.mark];
        let parts = if self.mark.is_empty() { &parts[..5] } else { &parts };
        tag(key, "approval", parts)
    }
}

impl Browser {
    /// The browser that sent a request.
    pub(crate) fn of(cookies: &Cookies, peer: IpAddr) -> Result<Self, NoRandomness> {
        let (id, is_new) = match cookies.browser() {
            Some(id) => (id.to_owned(), false),
            None => (random::text()?, true),
        };
        let approvals =
            cookies.approvals().split('.').filter(|entry| entry.len() == 2 * HALF).map(str::to_owned);
        let approvals = approvals.take(limits::APPROVALS).collect();
        let user = cookies.user().to_owned();
        Ok(Self { id, is_new, approvals, address: counted_address(peer), user })
    }

    /// A new state for a login in this browser.
    pub(crate) fn state(&self, keys: &OpaqueTokens) -> Result<String, NoRandomness> {
        let random = random::base64(&random::bytes::<16>()?);
        let tag = tag(keys.current(), "state", &[&self.id, &random]);
        Ok(random + &tag)
    }

    /// Whether a login with this state began in this browser.
    pub(crate) fn began(&self, keys: &OpaqueTokens, state: &str) -> bool {
        let Some((random, found)) = state.split_at_checked(HALF) else { return false };
        keys.all().any(|key| is_same(&tag(key, "state", &[&self.id, random]), found))
    }

    /// A token that proves that a form was on a page for this browser.
    pub(crate) fn form_token(&self, keys: &OpaqueTokens, content: &str) -> String {
        tag(keys.current(), "form", &[&self.id, content])
    }

    /// Whether a form was on a page for this browser.
    pub(crate) fn has_form(&self, keys: &OpaqueTokens, content: &str, token: &str) -> bool {
        keys.all().any(|key| is_same(&tag(key, "form", &[&self.id, content]), token))
    }

    /// A value for a cookie: this user has logged in in this browser.
    pub(crate) fn signed_in(&self, keys: &OpaqueTokens, user: &User, until: u64) -> String {
        let text = serde_json::json!([user, until]).to_string();
        let text = random::base64(text.as_bytes());
        let tag = tag(keys.current(), "signed-in", &[&self.id, &text]);
        format!("{text}.{tag}")
    }

    /// Who has logged in in this browser, if that was not too long before.
    pub(crate) fn user(&self, keys: &OpaqueTokens, now: u64) -> Option<User> {
        let (text, found) = self.user.split_once('.')?;
        keys.all().find(|key| is_same(&tag(key, "signed-in", &[&self.id, text]), found))?;
        let (user, until): (User, u64) = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        (now < until).then_some(user)
    }

    /// Whether some user of this browser has approved this.
    pub(crate) fn remembers(&self, keys: &OpaqueTokens, approval: &Approval<'_>) -> bool {
        keys.all().any(|key| {
            let tag = approval.tag(key, &self.id);
            self.approvals.iter().any(|entry| entry.starts_with(&tag))
        })
    }

    /// Whether this user has approved this in this browser.
    pub(crate) fn has_approved(&self, keys: &OpaqueTokens, approval: &Approval<'_>, user: &str) -> bool {
        keys.all().any(|key| self.approvals.contains(&self.entry(key, approval, user)))
    }

    /// The approvals with this one, the newest first.
    pub(crate) fn approvals_with(&self, keys: &OpaqueTokens, approval: &Approval<'_>, user: &str) -> String {
        let new = self.entry(keys.current(), approval, user);
        let others = self.approvals.iter().filter(|entry| **entry != new).take(limits::APPROVALS - 1);
        [&new].into_iter().chain(others).map(String::as_str).collect::<Vec<_>>().join(".")
    }

    fn entry(&self, key: &[u8], approval: &Approval<'_>, user: &str) -> String {
        let approved = approval.tag(key, &self.id);
        let user = tag(key, "user", &[&self.id, &approved, user]);
        approved + &user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_of_one_user_for_one_client_in_one_browser() {
        let keys = OpaqueTokens::new(vec![[1; 32]]);
        let browser = |id: &str, approvals: &str| Browser {
            id: id.into(),
            is_new: false,
            approvals: approvals.split('.').map(str::to_owned).collect(),
            address: IpAddr::from([127, 0, 0, 1]),
            user: String::new(),
        };
        let (scopes, other) = (vec!["openid".to_owned()], vec!["admin".to_owned()]);
        let approval = |client_id: &'static str, redirect_uri: &'static str| Approval {
            client_id,
            redirect_uri,
            scopes: &scopes,
            resources: &[],
            mark: "",
        };
        let given = approval("c", "http://127.0.0.1:1/cb");
        let cookie = browser("one", "").approvals_with(&keys, &given, "ann");
        let same = browser("one", &cookie);
        let later = approval("c", "http://127.0.0.1:2/cb");
        assert!(same.remembers(&keys, &later) && same.has_approved(&keys, &later, "ann"));
        assert!(!same.has_approved(&keys, &later, "bob"));
        for foreign in [approval("d", "http://127.0.0.1:1/cb"), approval("c", "http://127.0.0.1:1/x")] {
            assert!(!same.remembers(&keys, &foreign));
        }
        assert!(
            !same.remembers(&keys, &Approval { scopes: &other, ..approval("c", "http://127.0.0.1:1/cb") })
        );
        let forgotten = Approval { mark: "1", ..approval("c", "http://127.0.0.1:1/cb") };
        assert!(!same.remembers(&keys, &forgotten) && !same.has_approved(&keys, &forgotten, "ann"));
        assert!(!browser("two", &cookie).remembers(&keys, &given));
    }

    #[test]
    fn a_state_belongs_to_the_browser_that_it_was_made_for() {
        let keys = OpaqueTokens::new(vec![[1; 32]]);
        let address = IpAddr::from([127, 0, 0, 1]);
        let browser = |id: &str| {
            let user = String::new();
            Browser { id: id.into(), is_new: false, approvals: Vec::new(), address, user }
        };
        let state = browser("one").state(&keys).unwrap();
        assert!(browser("one").began(&keys, &state) && !browser("two").began(&keys, &state));
        for wrong in ["", "x", &"x".repeat(44), &state[1..]] {
            assert!(!browser("one").began(&keys, wrong), "{wrong}");
        }
    }
}
