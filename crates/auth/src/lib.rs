//! Authentication: tokens are validated against their issuer, and exchanged for others.
//!
//! An [`Authenticator`] returns the identity of a request's caller, or why it is rejected. A JWT is validated here,
//! with the keys of its issuer, which [`Keys`](keys::Keys) fetches and caches; any other token is opaque, and is
//! introspected at its issuer ([`introspection`]). The challenge for an unauthenticated caller, and the metadata that names
//! the issuer (RFC 9728), are in [`ProtectedResource`]. An [`Exchanger`] exchanges the caller's token for another one
//! (RFC 8693), and so do [`OnBehalfOf`] and [`CrossAppAccess`]; [`aws`] exchanges it for credentials of AWS. At a
//! [`LoginProvider`], users log in with their browser.
//! A [`Seal`] encrypts what is stored elsewhere.
//!
//! All requests go through one client ([`fetch`]), which checks the addresses that it connects to, so that
//! neither a document of the issuer nor a change of DNS leads it into the private network.
//!
//! No token, claim or secret is in an error or a log. Every wait, map and body has a bound in [`limits`].

mod authenticator;
pub mod aws;
mod bearer;
mod cache;
mod claims;
mod cross_app;
mod delegation;
mod error;
mod exchange;
mod fetch;
mod fetched;
mod form;
mod id_token;
mod identity;
mod introspection;
mod jwt;
mod keys;
pub mod limits;
mod login;
mod mac;
mod on_behalf_of;
mod own;
mod peer;
mod places;
mod resource;
mod seal;
mod signed;
mod token_endpoint;

pub use authenticator::Authenticator;
pub use bearer::bearer;
pub use cross_app::{CrossAppAccess, CrossAppConfig, TokenClient};
pub use delegation::{Actor, Delegation};
pub use error::{AuthenticationError, SetupError};
pub use exchange::{ExchangeError, Exchanger};
pub use fetch::{FetchError, Fetcher, Reach, redirect};
pub use id_token::{ExpectedIdToken, IdTokenError, id_token_subject};
pub use identity::Identity;
pub use keys::Pace;
pub use login::{LoginError, LoginProvider, LoginSecrets, LoginSettings};
pub use mac::hmac_hex;
pub use on_behalf_of::{OnBehalfOf, OnBehalfOfConfig};
pub use own::OwnTokens;
pub use peer::counted_address;
pub use places::{Place, Places};
pub use resource::{ProtectedResource, WELL_KNOWN};
pub use seal::Seal;
pub use signed::{IssuerKeys, SignedToken, verified_by};
