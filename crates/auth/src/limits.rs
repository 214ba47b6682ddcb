//! Every limit of this crate.

use std::time::Duration;

/// The longest token that is looked at, in bytes.
pub const TOKEN: usize = 32 << 10;
/// The longest id of a key.
pub const KEY_ID: usize = 512;
/// The keys of an issuer that are kept. Of a longer list, the first ones are.
pub const KEYS: usize = 128;
/// The keys with one id that a signature is tried with. There should be one.
pub const KEYS_WITH_ONE_ID: usize = 4;
/// The ids of keys that the issuer is known not to have.
pub const MISSING_KEYS: usize = 1024;
/// The requests that wait for a key which is not known yet. More are told to come back.
pub const WAITING: usize = 1024;
/// The largest list of keys, and the largest description of an issuer.
pub const DOCUMENT: usize = 512 << 10;
/// The largest answer about one token.
pub const INTROSPECTION: usize = 64 << 10;
/// The largest answer of an exchange.
pub const EXCHANGE: usize = 1 << 20;
/// The answers about tokens, and the exchanged tokens, that are kept.
pub const CACHED: usize = 10_000;
/// How long an answer about an opaque token is believed: one that was revoked is taken for this long.
pub const ANSWER_LIFE: Duration = Duration::from_secs(30);
/// How long before its end an exchanged token is not used any more.
pub const EXCHANGE_MARGIN: Duration = Duration::from_secs(30);
/// The largest answer with credentials.
pub const STS: usize = 64 << 10;
/// How long before their end credentials are not used any more.
pub const CREDENTIALS_MARGIN: Duration = Duration::from_secs(60);
/// How long a request to an issuer may take, with everything.
pub const FETCH_TIME: Duration = Duration::from_secs(10);
/// How long an exchange may take.
pub const EXCHANGE_TIME: Duration = Duration::from_secs(30);
/// How long a connection to an issuer may take.
pub const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The requests to issuers at one time. More wait for their turn, within their own time.
pub const FETCHES: usize = 64;
/// The redirects that are followed, all of them at the same host.
pub const REDIRECTS: usize = 3;
/// The parties of a delegation that are told one by one.
pub const ACTORS: usize = 10;
/// How far the clock of an issuer may be ahead: a token that becomes valid within this time is taken. There is no
/// such grace at its end.
pub const EARLY: Duration = Duration::from_secs(5);
