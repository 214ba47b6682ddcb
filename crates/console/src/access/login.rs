//! Users log in at an OpenID provider that the API server of the cluster trusts.
//!
//! Nothing is stored for a login that has begun: a cookie has a random id with its time, and what else belongs to the login
//! (`state`, `nonce`, proof key) is a keyed hash of that id. So only the browser that began a login can end it, and a stranger
//! who begins many takes no memory.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac, rand};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use skep_auth::{LoginError, LoginProvider, LoginSecrets, LoginSettings, Places};
use tracing::warn;

use crate::limits;

/// The path to which the provider sends browsers.
pub(crate) const CALLBACK: &str = "/login/callback";

/// Logins at a provider.
pub struct Login {
    provider: LoginProvider,
    key: hmac::Key,
    /// The places for requests to the provider that strangers cause. They are not those of sign-ins with a token: a provider
    /// that hangs must not keep other users out.
    places: Arc<Places>,
}

/// A login that has begun.
pub(super) struct Begun {
    /// For the cookie of the browser.
    pub(super) id: String,
    /// Where the browser goes.
    pub(super) location: String,
}

/// Why a login has not succeeded, for the user. The page has a sentence for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The user or the provider refused.
    Refused,
    /// This browser has not begun it, or too long ago.
    Unknown,
    /// The provider does not respond as it should.
    Provider,
    /// The cluster does not accept the ID token.
    Cluster,
}

impl Failure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Provider => "provider",
            Self::Cluster => "cluster",
        }
    }
}

/// A login that has ended well.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished {
    /// The ID token.
    pub(super) token: String,
    /// The `state` of its request.
    pub(super) state: String,
}

/// What the provider sends back.
#[derive(Default)]
struct Returned {
    code: Option<String>,
    state: Option<String>,
    issuer: Option<String>,
}

impl Login {
    /// Logins at the provider of this client. Browsers reach the console at this address, such as `https://console.example`.
    pub fn new(settings: LoginSettings, address: &str) -> Result<Self, String> {
        let address = address.trim_end_matches('/');
        let is_encrypted = ["https://", "http://localhost:", "http://127.0.0.1:"]
            .iter()
            .any(|start| address.starts_with(start));
        if !is_encrypted {
            return Err(format!(
                "the address of the console must be https, or http on localhost: {address:?}"
            ));
        }
        let mut key = [0; 32];
        rand::fill(&mut key).map_err(|_| "the system has no random numbers")?;
        let settings = LoginSettings { redirect_uri: format!("{address}{CALLBACK}"), ..settings };
        let provider = LoginProvider::new(settings).map_err(|error| error.to_string())?;
        let places = Places::new(limits::LOGINS, limits::OF_AN_ADDRESS);
        Ok(Self { provider, key: hmac::Key::new(hmac::HMAC_SHA256, &key), places })
    }

    /// The host of the provider.
    pub(super) fn host(&self) -> &str {
        self.provider.host()
    }

    /// Begins a login, unless the provider does not respond, or too many wait for it.
    pub(super) async fn begin(&self, peer: IpAddr) -> Option<Begun> {
        let _place = self.places.take(peer)?;
        let mut id = [0; 32];
        rand::fill(&mut id[8..]).ok()?;
        id[..8].copy_from_slice(&now().to_be_bytes());
        let id = URL_SAFE_NO_PAD.encode(id);
        match self.provider.url(&self.secrets(&id)).await {
            Ok(location) => Some(Begun { id, location }),
            Err(error) => {
                warn!(%error, provider = self.host(), "no user can log in");
                None
            }
        }
    }

    /// Ends the login that this browser began.
    pub(super) async fn finish(
        &self,
        id: Option<&str>,
        query: &str,
        peer: IpAddr,
    ) -> Result<Finished, Failure> {
        let id = id.filter(|id| is_recent(id, now())).ok_or(Failure::Unknown)?;
        let Returned { code, state, issuer } = returned(query);
        let secrets = self.secrets(id);
        let is_own =
            |state: &String| verify_slices_are_equal(state.as_bytes(), secrets.state.as_bytes()).is_ok();
        if !state.as_ref().is_some_and(is_own) {
            return Err(Failure::Unknown);
        }
        let code = code.ok_or(Failure::Refused)?;
        let _place = self.places.take(peer).ok_or(Failure::Provider)?;
        let token = self.provider.id_token(&code, issuer.as_deref(), &secrets).await.map_err(|error| {
            warn!(%error, provider = self.host(), "a login has failed");
            match error {
                LoginError::Fetch(_) | LoginError::Metadata(_) => Failure::Provider,
                LoginError::Signature(_) | LoginError::IdToken(_) | LoginError::OtherIssuer => {
                    Failure::Refused
                }
            }
        })?;
        Ok(Finished { token, state: secrets.state })
    }

    fn secrets(&self, id: &str) -> LoginSecrets {
        let of = |label: &str| {
            let tag = hmac::sign(&self.key, format!("{label}\0{id}").as_bytes());
            URL_SAFE_NO_PAD.encode(tag)
        };
        LoginSecrets { state: of("state"), nonce: of("nonce"), verifier: of("verifier") }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Whether a login began a short time ago. Its time is part of what `state` is a keyed hash of.
fn is_recent(id: &str, now: u64) -> bool {
    let bytes = URL_SAFE_NO_PAD.decode(id).ok().filter(|bytes| bytes.len() == 32);
    let time = bytes.and_then(|bytes| bytes.first_chunk::<8>().copied()).map(u64::from_be_bytes);
    time.is_some_and(|time| time <= now && now - time < limits::LOGIN_TIME.as_secs())
}

/// The parameters of a callback. One that is there twice counts as missing (RFC 6749, section 3.1).
fn returned(query: &str) -> Returned {
    let of = |name: &str| {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known == name);
        let first = values.next().map(|(_, value)| value.into_owned());
        first.filter(|_| values.next().is_none())
    };
    Returned { code: of("code").filter(|code| !code.is_empty()), state: of("state"), issuer: of("iss") }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn login() -> Login {
        let settings = LoginSettings { issuer: "https://idp.invalid".into(), ..LoginSettings::default() };
        Login::new(settings, "https://console.example/").unwrap()
    }

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([203, 0, 113, last])
    }

    fn id(time: u64) -> String {
        let mut id = [7; 32];
        id[..8].copy_from_slice(&time.to_be_bytes());
        URL_SAFE_NO_PAD.encode(id)
    }

    #[tokio::test]
    async fn only_the_browser_that_began_a_login_can_end_it_and_in_time() {
        let (mine, other) = (login(), login());
        let id_of = id(now());
        let state = mine.secrets(&id_of).state;
        let query = format!("code=c&state={state}");
        for (login, id, query) in [
            // Without the cookie, or with that of another login.
            (&mine, None, query.clone()),
            (&mine, Some(id(now() - 1)), query.clone()),
            (&mine, Some("nonsense".to_owned()), query.clone()),
            // Too late.
            (&mine, Some(id(now() - limits::LOGIN_TIME.as_secs())), query.clone()),
            // A state that another process has made, none, or two.
            (&other, Some(id_of.clone()), query.clone()),
            (&mine, Some(id_of.clone()), "code=c".to_owned()),
            (&mine, Some(id_of.clone()), format!("{query}&state={state}")),
        ] {
            assert_eq!(login.finish(id.as_deref(), &query, peer(1)).await, Err(Failure::Unknown), "{query}");
        }
        let refused = format!("error=access_denied&state={state}");
        assert_eq!(mine.finish(Some(&id_of), &refused, peer(1)).await, Err(Failure::Refused));
        // It goes on to the provider, which does not exist.
        assert_eq!(mine.finish(Some(&id_of), &query, peer(1)).await, Err(Failure::Provider));
    }

    /// Logins at a provider that accepts connections, and never responds.
    fn hanging() -> (std::net::TcpListener, Login) {
        let provider = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("https://{}", provider.local_addr().unwrap());
        let settings = LoginSettings { issuer, ..LoginSettings::default() };
        (provider, Login::new(settings, "https://console.example").unwrap())
    }

    #[tokio::test]
    async fn strangers_who_wait_for_a_provider_that_hangs_are_few() {
        let (_provider, login) = hanging();
        let strangers = (0..limits::LOGINS).map(|number| peer((number / limits::OF_AN_ADDRESS) as u8));
        let mut waiting: Vec<_> = strangers.map(|peer| Box::pin(login.begin(peer))).collect();
        assert!(waiting.iter_mut().all(|begun| begun.now_or_never().is_none()), "they wait");
        let user = peer(9);
        assert!(login.begin(user).now_or_never().is_some_and(|begun| begun.is_none()), "one too many");
        let id = id(now());
        let query = format!("code=c&state={}", login.secrets(&id).state);
        let finished = login.finish(Some(&id), &query, user).now_or_never();
        assert_eq!(finished, Some(Err(Failure::Provider)));
        waiting.pop();
        assert!(login.begin(user).now_or_never().is_none(), "one who leaves makes room");
    }

    #[tokio::test]
    async fn a_stranger_at_one_address_keeps_no_user_elsewhere_from_logging_in() {
        let (_provider, login) = hanging();
        let (stranger, user) = (peer(1), peer(2));
        let mut waiting: Vec<_> = (0..limits::LOGINS).map(|_| Box::pin(login.begin(stranger))).collect();
        let refused = waiting.iter_mut().filter_map(|begun| begun.now_or_never()).count();
        assert_eq!(refused, limits::LOGINS - limits::OF_AN_ADDRESS, "it has its part");
        assert!(login.begin(user).now_or_never().is_none(), "the login of the user goes on");
        let id = id(now());
        let query = format!("code=c&state={}", login.secrets(&id).state);
        assert_eq!(login.finish(Some(&id), &query, user).now_or_never(), None, "and its end, too");
    }

    #[test]
    fn what_belongs_to_a_login_differs_and_needs_the_key() {
        let (mine, other) = (login(), login());
        let (first, second) = (mine.secrets("a"), mine.secrets("b"));
        assert!(
            first.state != second.state && first.nonce != second.nonce && first.verifier != second.verifier
        );
        assert!(first.state != first.nonce && first.nonce != first.verifier);
        assert!(first != other.secrets("a"));
        assert_eq!(first.verifier.len(), 43);
    }

    #[test]
    fn the_address_of_the_console_is_encrypted_or_local() {
        let made = |address: &str| {
            Login::new(LoginSettings { issuer: "https://i".into(), ..Default::default() }, address)
        };
        for address in ["https://console.example", "http://localhost:8080", "http://127.0.0.1:8080/"] {
            assert!(made(address).is_ok(), "{address}");
        }
        for address in ["http://console.example", "http://localhost.evil.example", "console.example", ""] {
            assert!(made(address).is_err(), "{address}");
        }
    }
}
