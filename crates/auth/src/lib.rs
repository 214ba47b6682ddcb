//! Who calls: tokens checked against their issuer, and exchanged for others.
//!
//! An [`Authenticator`] says who a request is from, or why it is refused. A token that is a JWT is checked here, with
//! the keys of its issuer, which are fetched and kept by [`Keys`](keys::Keys); any other is opaque, and its issuer is
//! asked about it ([`introspection`]). What a refused caller is told, and where callers learn whom to ask for a token
//! (RFC 9728), is in [`ProtectedResource`]. An [`Exchanger`] gets another token in place of the caller's (RFC 8693), and
//! [`aws`] credentials.
//!
//! Whatever is fetched goes through one client ([`fetch`]), which looks at the addresses that it connects to, so that
//! neither a document of the issuer nor a change of DNS leads it into the private network.
//!
//! No token, claim or secret is in an error or a log. Every wait, map and body has a bound in [`limits`].

mod authenticator;
pub mod aws;
mod bearer;
mod cache;
mod claims;
mod delegation;
mod error;
mod exchange;
mod fetch;
mod form;

mod identity;
mod introspection;
mod jwt;
mod keys;
pub mod limits;
mod mac;
mod resource;

pub use authenticator::Authenticator;
pub use bearer::bearer;
pub use delegation::{Actor, Delegation};
pub use error::{Refusal, SetupError};
pub use exchange::{ExchangeError, Exchanger};
pub use fetch::redirect;
pub use identity::Identity;
pub use keys::Pace;
pub use mac::hmac_hex;
pub use resource::{ProtectedResource, WELL_KNOWN};
