//! Every number of the authorization server.

use std::time::Duration;

/// The largest body of a request.
pub(crate) const BODY: usize = 64 << 10;
/// How long it may take to arrive.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
/// The largest body that needs no place among those that arrive: clients send no larger one, as a rule.
pub(crate) const SMALL_BODY: u64 = 4 << 10;
/// The larger bodies that arrive at once, and those of one address.
pub(crate) const BODIES: usize = 512;
pub(crate) const BODIES_OF_AN_ADDRESS: usize = 64;
/// The longest query of a request.
pub(crate) const QUERY: usize = 16 << 10;
/// The longest `state` of a client, and the longest `scope`.
pub(crate) const PARAMETER: usize = 4 << 10;
/// The shortest token that clients present to register.
pub(crate) const REGISTRATION_TOKEN: usize = 16;
/// The longest redirect URI, resource and client id.
pub(crate) const URI: usize = 2048;
/// The longest name of a client.
pub(crate) const NAME: usize = 256;
/// The redirect URIs of a client.
pub(crate) const REDIRECT_URIS: usize = 10;
/// How long they are together, so that the rows of clients are small.
pub(crate) const REDIRECT_URIS_SIZE: usize = 4 << 10;

/// How long a login may take.
pub(crate) const PENDING_LIFE: Duration = Duration::from_secs(600);
/// How long a spent code is known as such, so that a second use ends its session.
pub(crate) const SPENT_LIFE: Duration = Duration::from_secs(1800);
/// How long a refresh token that was replaced is refused only: its client may have sent it twice, by two of its processes. After
/// that its session ends.
pub(crate) const REPLACED_LEEWAY: Duration = Duration::from_secs(30);
/// How long a login that was taken can be taken again by the same request, if the response to it is lost.
pub(crate) const TAKEN_LIFE: Duration = Duration::from_secs(30);
/// How long a client waits until the store knows that it gets its tokens.
pub(crate) const DELIVERY_TIME: Duration = Duration::from_secs(1);
/// How long a registered client lives after it was used.
pub(crate) const CLIENT_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How much longer than its access token the row of an upstream lives.
pub(crate) const UPSTREAM_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long the token of an upstream is valid at most, in seconds, whatever the upstream reports. That is ten years.
pub(crate) const UPSTREAM_TOKEN_LIFE: u64 = 10 * 365 * 24 * 3600;

/// How long a registered client lives that has never got a token: for longer than its user takes to log in.
pub(crate) const NEW_CLIENT_LIFE: Duration = Duration::from_secs(24 * 3600);
/// The clients that have got tokens, in memory. Beyond that, the one that was not used for longest is removed.
pub(crate) const CLIENTS: usize = 10_000;
/// The same in Redis.
pub(crate) const CLIENTS_IN_REDIS: usize = 20_000;
/// The clients that have got none yet, and those of one address, which may be an ingress with all its users.
pub(crate) const NEW_CLIENTS: usize = 10_000;
pub(crate) const NEW_CLIENTS_OF_AN_ADDRESS: usize = 2_500;
/// The memory of all logins that wait, and of those of one address, which may be an ingress with all its users.
pub(crate) const LOGINS: usize = 64 << 20;
pub(crate) const LOGINS_OF_AN_ADDRESS: usize = 16 << 20;
/// The same in Redis, as their number.
pub(crate) const LOGINS_IN_REDIS: usize = 10_000;
pub(crate) const LOGINS_OF_AN_ADDRESS_IN_REDIS: usize = 2_500;
/// The codes, tokens and sessions of each sort that the memory store has.
pub(crate) const ROWS: usize = 50_000;
/// How many of them are of one user: the sessions that the user has ended, and the clients whose sessions these were.
pub(crate) const ROWS_OF_A_USER: usize = 1_000;
/// How long the memory store knows a user after a login, and both stores which sessions the user has.
pub(crate) const USER_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// The sessions of a user that have tokens of an upstream. Of one more, the oldest loses its tokens.
pub(crate) const SESSIONS_OF_A_USER: usize = 100;

/// The connections in Redis that are found without a look at all rows. Of one more, that which expires first is not counted.
pub(crate) const CONNECTIONS_IN_REDIS: usize = 100_000;

/// About how many sessions or clients administrators get at once, and how often so many sessions are looked at for that.
pub(crate) const ADMINISTRATION_PAGE: usize = 100;
pub(crate) const ADMINISTRATION_PAGES: usize = 10;

/// The largest document of a client.
pub(crate) const DOCUMENT: usize = 10 << 10;
/// The timeout of fetching it.
pub(crate) const DOCUMENT_TIME: Duration = Duration::from_secs(5);
/// How long a document is cached at most, whatever its headers are, and used after that if its host does not respond.
pub(crate) const DOCUMENT_LIFE: Duration = Duration::from_secs(24 * 3600);
/// How long a document is used at least: a host that forbids caching would be asked several times for each login.
pub(crate) const DOCUMENT_LEAST_LIFE: Duration = Duration::from_secs(60);
/// How long a document that was known is used before its host is tried again, if it could not respond.
pub(crate) const DOCUMENT_PAUSE: Duration = Duration::from_secs(30);
/// The largest response of an upstream.
pub(crate) const UPSTREAM_RESPONSE: usize = 1 << 20;
/// The timeout of a request to an upstream.
pub(crate) const UPSTREAM_TIME: Duration = Duration::from_secs(30);

/// How long requests share the failure of a refresh, before another one is tried.
pub(crate) const REFRESH_PAUSE: Duration = Duration::from_secs(2);
/// How long a lock is held that is not renewed: others wait no longer for a process that was killed.
pub(crate) const LOCK_LIFE: Duration = Duration::from_secs(10);
/// How often it is renewed: a few attempts may fail.
pub(crate) const LOCK_RENEWAL: Duration = Duration::from_secs(2);
/// How long one is waited for: longer than a request to an upstream takes.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(35);
/// How long a token that an upstream has renewed is kept while the store does not take it.
pub(crate) const SAVE_TIME: Duration = Duration::from_secs(30);
/// How long before its end a registration at an upstream is replaced.
pub(crate) const REGISTRATION_MARGIN: Duration = Duration::from_secs(60);

/// How far the clock of an issuer may be off.
pub(crate) const SKEW: u64 = 60;
/// How long an assertion of a client may be valid, in seconds.
pub(crate) const CLIENT_ASSERTION_LIFE: u64 = 600;
/// The actors in a delegated token.
pub(crate) const ACTORS: usize = 10;
/// The length of the claim that lists them.
pub(crate) const ACTORS_SIZE: usize = 8 << 10;

/// The addresses and clients whose requests are counted, for each limit.
pub(crate) const COUNTED: usize = 20_000;
/// How often those are looked for that need not be counted any more, in seconds.
pub(crate) const COUNTED_PAUSE: f64 = 0.1;
/// The approvals that a browser remembers.
pub(crate) const APPROVALS: usize = 24;
/// How long a browser remembers them.
pub(crate) const BROWSER_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long the page about connections knows who has logged in.
pub(crate) const SIGNED_IN: Duration = Duration::from_secs(900);

/// How many requests per second, and how many at once.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    pub(crate) burst: f64,
}

/// Registrations by one address.
pub(crate) const REGISTER: Rate = Rate { per_second: 1.0, burst: 5.0 };
/// Logins that one address begins, and their further steps. An ingress has one address for all its users.
pub(crate) const LOGIN_OF_PEER: Rate = Rate { per_second: 100.0, burst: 500.0 };
/// Logins for one client at one address.
pub(crate) const LOGIN_OF_CLIENT: Rate = Rate { per_second: 25.0, burst: 150.0 };
/// Token requests by one address.
pub(crate) const TOKEN_OF_PEER: Rate = Rate { per_second: 200.0, burst: 1000.0 };
/// Token requests of one client at one address.
pub(crate) const TOKEN_OF_CLIENT: Rate = Rate { per_second: 50.0, burst: 300.0 };
/// Documents that are fetched because of requests of one address.
pub(crate) const DOCUMENTS: Rate = Rate { per_second: 20.0, burst: 100.0 };
/// How many of them are fetched at once because of requests of one address: a small part of what is fetched at once at all.
pub(crate) const DOCUMENTS_AT_ONCE: usize = skep_auth::limits::FETCHES / 8;
/// Metadata and keys for one address.
pub(crate) const METADATA_OF_PEER: Rate = Rate { per_second: 200.0, burst: 1000.0 };
