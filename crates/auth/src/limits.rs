//! Every limit of this crate.

use std::time::Duration;

/// The longest token that is parsed, or accepted of a token endpoint, in bytes.
pub const TOKEN: usize = 32 << 10;
/// The longest id of a key.
pub const KEY_ID: usize = 512;
/// The keys of an issuer that are stored. Of a longer list, the first ones are.
pub const KEYS: usize = 128;
/// The keys with one id that a signature is tried with. There should be one.
pub const KEYS_WITH_ONE_ID: usize = 4;
/// The ids of keys that the issuer is known not to have.
pub const MISSING_KEYS: usize = 1024;
/// The requests that wait for an unknown key. Further ones are rejected as unavailable.
pub const WAITING: usize = 1024;
/// The largest list of keys, and the largest description of an issuer.
pub const DOCUMENT: usize = 512 << 10;
/// The largest introspection response.
pub const INTROSPECTION: usize = 64 << 10;
/// The largest response of an exchange.
pub const EXCHANGE: usize = 1 << 20;
/// How long a token that was exchanged again, as the one before was rejected, is used although it is rejected, too.
pub const REJECTION_PAUSE: Duration = Duration::from_secs(30);
/// The introspection responses, and the exchanged tokens, that are cached.
pub const CACHED: usize = 10_000;
/// How long an introspection response is cached: a revoked token is accepted for this long.
pub const ANSWER_LIFE: Duration = Duration::from_secs(30);
/// How long before its expiry an exchanged token is no longer used.
pub const EXCHANGE_MARGIN: Duration = Duration::from_secs(30);
/// The largest response with credentials.
pub const STS: usize = 64 << 10;
/// How long before their expiry credentials are no longer used.
pub const CREDENTIALS_MARGIN: Duration = Duration::from_secs(60);
/// The timeout of a request to an issuer, including redirects.
pub const FETCH_TIME: Duration = Duration::from_secs(10);
/// The timeout of an exchange.
pub const EXCHANGE_TIME: Duration = Duration::from_secs(30);
/// The timeout of connecting to an issuer.
pub const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The concurrent requests to issuers. Further ones wait, within their own timeout.
pub const FETCHES: usize = 64;
/// The redirects that are followed, all at the same host.
pub const REDIRECTS: usize = 3;
/// The parties of a delegation that are listed.
pub const ACTORS: usize = 10;
/// How far the clock of an issuer may be ahead: a token that becomes valid within this time is accepted. There is no
/// such leeway at its expiry.
pub const EARLY: Duration = Duration::from_secs(5);
/// How far the clock of a provider where users log in may differ.
pub const SKEW: Duration = Duration::from_secs(60);
/// The largest response of a token endpoint to a login.
pub const LOGIN: usize = 256 << 10;
