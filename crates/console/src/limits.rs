//! Every limit of the console.

use std::time::Duration;

/// How many streams of changes are open at once.
pub(crate) const STREAMS: usize = 64;
/// How many of them are of one user: a browser opens six connections to an origin.
pub(crate) const STREAMS_OF_USER: usize = 16;
/// How many changes a stream may be behind. Then the page reads all objects again.
pub(crate) const BEHIND: usize = 1024;
/// How many of the last calls a stream begins with.
pub(crate) const BACKLOG: usize = 100;
/// How long a stream lasts. Then the page connects again, and is authenticated again.
pub(crate) const STREAM_TIME: Duration = Duration::from_secs(10 * 60);
/// How often calls are sent.
pub(crate) const CALLS_TIME: Duration = Duration::from_millis(250);
/// How often figures about traffic are sent.
pub(crate) const TRAFFIC_TIME: Duration = Duration::from_secs(1);
/// How often a stream without changes sends a comment, so that nothing on the path takes it for dead.
pub(crate) const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
/// How many events are kept for each object.
pub(crate) const EVENTS: usize = 50;
/// How many events wait until it is known whose they are, in each watch.
pub(crate) const UNCLAIMED: usize = 10_000;
/// How often that is looked up again.
pub(crate) const CLAIM_TIME: Duration = Duration::from_millis(250);
/// How many things that do not exist any more are remembered, for events about them that come later.
pub(crate) const FORMER: usize = 10_000;
/// How many restarts of an object are shown.
pub(crate) const RESTARTS: usize = 20;
/// How much of the last words of a container is kept.
pub(crate) const LAST_WORDS: usize = 512;
/// How many sessions users have in all. Beyond that, the user with most loses their oldest.
pub(crate) const SESSIONS: usize = 256;
/// How many of them are of one user. Beyond that, their oldest ends.
pub(crate) const SESSIONS_OF_USER: usize = 16;
/// How long a user stays signed in.
pub(crate) const SESSION_TIME: Duration = Duration::from_secs(60 * 60);
/// How many tokens are verified at once.
pub(crate) const SIGN_INS: usize = 16;
/// How many logins wait for the provider at once.
pub(crate) const LOGINS: usize = 16;
/// How many of either are because of requests of one address, which may be an ingress with all its users.
pub(crate) const OF_AN_ADDRESS: usize = 8;
/// How long a login at a provider may take.
pub(crate) const LOGIN_TIME: Duration = Duration::from_secs(10 * 60);
/// The longest query with which a provider sends a browser back.
pub(crate) const CALLBACK: usize = 8 << 10;
/// The largest body of a sign-in.
pub(crate) const SIGN_IN: usize = 32 << 10;
/// The longest token.
pub(crate) const TOKEN: usize = 16 << 10;
/// How long the API server may take to verify a token.
pub(crate) const REVIEW_TIME: Duration = Duration::from_secs(10);
/// How long its decision about a right holds.
pub(crate) const RIGHTS_TIME: Duration = Duration::from_secs(30);
/// How many decisions are kept for each user.
pub(crate) const RIGHTS: usize = 10_000;
/// How many requests to MCP servers are in flight at once.
pub(crate) const MCP_REQUESTS: usize = 64;
/// How many of them are of one user.
pub(crate) const MCP_REQUESTS_OF_USER: usize = 16;
/// How many bytes the messages of all of them have, beyond the first 16 KiB of each.
pub(crate) const MESSAGES: usize = 64 << 20;
/// How long the API server may take to name the pods of a server.
pub(crate) const ENDPOINT_TIME: Duration = Duration::from_secs(5);
/// How many EndpointSlices of a Service are considered.
pub(crate) const SLICES: u32 = 16;
/// The largest message to an MCP server.
pub(crate) const MESSAGE: usize = 8 << 20;
/// How long the body of a request may take to arrive.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
/// How many pods are read, of all servers together.
pub(crate) const READERS: usize = 2_000;
/// How many of these are of one object. A server has a few replicas.
pub(crate) const READERS_OF_OBJECT: usize = 32;
/// How many tokens for pods are requested at the same time.
pub(crate) const TOKEN_REQUESTS: usize = 8;
/// How long such a token is valid: the shortest time that the API server grants.
pub(crate) const TOKEN_TIME: Duration = Duration::from_secs(600);
/// How long a pod may take to begin its stream, and the pause between two pieces of it. It sends a comment every 15 seconds.
pub(crate) const CALLS_SILENCE: Duration = Duration::from_secs(45);
/// The least time between two events of a pod, so that a hostile one cannot take all of the console's.
pub(crate) const CALLS_PACE: Duration = Duration::from_millis(50);
/// The largest event of a pod.
pub(crate) const CALLS_EVENT: usize = 512 << 10;
/// The first pause after a pod could not be read, and the longest.
pub(crate) const CALLS_RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long pods are read after the last page was closed.
pub(crate) const CALLS_LINGER: Duration = Duration::from_secs(30);
/// How long changes of objects and pods are collected.
pub(crate) const CALLS_COLLECT: Duration = Duration::from_millis(200);
/// How many requests about the sessions of users are in flight.
pub(crate) const ADMINISTRATIONS: usize = 16;
/// How many of them are of one user.
pub(crate) const ADMINISTRATIONS_OF_USER: usize = 4;
/// How long one of them may take, with all that it requests of pods.
pub(crate) const ADMINISTRATION_TIME: Duration = Duration::from_secs(60);
/// How long a pod may take to respond to a part of it. It gives up itself after 20 seconds.
pub(crate) const ADMINISTRATION_PART_TIME: Duration = Duration::from_secs(25);
/// The largest response of a pod.
pub(crate) const ADMINISTRATION_PART: usize = 1 << 20;
/// How many sessions or clients of a server are shown, and how many bytes of them are read: a part more at most.
pub(crate) const SESSIONS_SHOWN: usize = 500;
pub(crate) const SESSIONS_READ: usize = 1 << 20;
