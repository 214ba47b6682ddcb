//! Every limit of an endpoint.

use std::{ops::RangeInclusive, time::Duration};

/// The largest body of a request, unless configured otherwise.
pub const REQUEST_BODY: usize = 8 << 20;
/// The largest response that is filtered. A larger one is not passed on.
pub const FILTERED_BODY: usize = 32 << 20;
/// The largest event of a stream that is filtered.
pub const FILTERED_EVENT: usize = 8 << 20;
/// The most bytes of bodies that are held at once, for all connections, apart from the first 16 KiB of each. A request
/// that needs more gets 503. One caller has at most half of what others leave.
pub const BODIES: usize = 128 << 20;
/// How many sessions are stored. Beyond that, no new one starts.
pub const SESSIONS: usize = 100_000;
/// How many of them one caller has. Beyond that, the one that it has not used for longest ends.
pub const SESSIONS_OF_A_CALLER: usize = 1_000;
/// The same for anonymous callers at one address.
pub const SESSIONS_OF_AN_ADDRESS: usize = 10_000;
/// If this many sessions end at once, their memory is returned to the system.
pub const MANY_SESSIONS: usize = 1_000;
/// How long after that. What else belonged to them, such as sessions at backends, ends meanwhile.
pub const RELEASE_PAUSE: Duration = Duration::from_secs(60);
/// How many bytes of `initialize` are stored for all sessions. Beyond that, a session cannot be restored.
pub const SESSION_BYTES: usize = 32 << 20;
/// How long an idle session lives, unless configured otherwise.
pub const SESSION_LIFE: Duration = Duration::from_secs(2 * 60 * 60);
/// How many of the last calls are kept for people who watch.
pub const LAST_CALLS: usize = 128;
/// How many requests of administrators are processed at once.
pub const ADMINISTRATION: usize = 4;
/// How long one of them may take.
pub const ADMINISTRATION_TIME: Duration = Duration::from_secs(20);
/// How long a review of the rights of whoever sends one may take.
pub const REVIEW_TIME: Duration = Duration::from_secs(10);
/// The longest parameter of one.
pub const ADMINISTRATION_PARAMETER: usize = 2048;
/// How many consoles watch the calls of an endpoint.
pub const CALLS_WATCHERS: usize = 16;
/// How often each of them gets the calls that are new.
pub const CALLS_TIME: Duration = Duration::from_millis(250);
/// How often a stream of calls without any sends a comment, so that nothing on the path takes it for dead.
pub const CALLS_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How many connections of users are shown to people who watch.
pub const CONNECTIONS_SHOWN: usize = 100;
/// How often each of these people gets them, if they have changed.
pub const CONNECTIONS_TIME: Duration = Duration::from_secs(3);
/// How old they may be then: the storage is not queried more often, however many watch.
pub const CONNECTIONS_AGE: Duration = Duration::from_secs(2);
/// How long that may take.
pub const CONNECTIONS_WAIT: Duration = Duration::from_secs(2);
/// How many sessions that clients ended are remembered, so that none of them is restored.
pub const ENDED_SESSIONS: usize = 10_000;
/// The timeout of a request to a Redis with sessions or limits, including the connection.
pub const REDIS_TIME: Duration = Duration::from_secs(3);
/// How much of that a connection to it may take.
pub const REDIS_CONNECT_TIME: Duration = Duration::from_secs(2);
/// How much of that its response may take.
pub const REDIS_ANSWER_TIME: Duration = Duration::from_secs(2);
/// For how many milliseconds a call that was counted is known, in case the reply is lost: longer than a request to Redis takes.
pub const COUNTED_CALL: u64 = 10_000;
/// The longest name that is part of a key in Redis. Of a longer one, its digest is.
pub const REDIS_NAME: usize = 256;
/// How many token buckets are kept in memory. Beyond that, a new caller has none for itself.
pub const BUCKETS: usize = 100_000;
/// How many connections are served at once.
pub const CONNECTIONS: usize = 10_000;
/// How many of them one address has. Many clients can share it, for example that of an ingress.
pub const CONNECTIONS_OF_AN_ADDRESS: usize = 5_000;
/// How many more are accepted for health probes. Other requests get 503 there.
pub const PROBE_CONNECTIONS: usize = 256;
/// How many of those one address has.
pub const PROBE_CONNECTIONS_OF_AN_ADDRESS: usize = 8;
/// How long the first request of a connection may take to arrive with all its headers.
pub const FIRST_HEAD_TIME: Duration = Duration::from_secs(15);
/// The same on a connection that is accepted for a probe. It ends with the response.
pub const PROBE_HEAD_TIME: Duration = Duration::from_secs(3);
/// The same from when the listener has stopped, for one that has begun to arrive.
pub const LAST_HEAD_TIME: Duration = Duration::from_secs(3);
/// How long a client may read nothing of what is sent to it.
pub const WRITE_TIME: Duration = Duration::from_secs(60);
/// The largest head of a request, and how much of a connection is read or written at once. As many are held as there are
/// connections, and a token may have half of it.
pub const HEAD: usize = 64 << 10;
/// From how many connections on a new one has [`SMALL_HEAD`] instead.
pub const LARGE_HEADS: usize = 2_000;
/// The largest head then: together they take no more than a small pod has.
pub const SMALL_HEAD: usize = 16 << 10;
/// How long the head of a request for metrics may take.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a connection may wait for the start of its next request and all its headers: longer than the minute for
/// which load balancers keep connections, so that it is not ended just as they use it.
pub const IDLE_TIME: Duration = Duration::from_secs(120);
/// How long the body of a request may take.
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a connection to the server may take.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How many redirects of the server are followed.
pub const REDIRECTS: usize = 10;
/// How long a proxy in a pod accepts requests after it received SIGTERM: its Service sends it some until every node
/// has removed its endpoint.
pub const LEAVE_TIME: Duration = Duration::from_secs(5);
/// Then it leaves as soon as no connection has arrived for this long,
pub const QUIET_TIME: Duration = Duration::from_secs(1);
/// or after this long: a busy node removes an endpoint late.
pub const LATE_TIME: Duration = Duration::from_secs(10);
/// How long all of that and requests in flight may take after [`LEAVE_TIME`]. A pod has 30 seconds.
pub const DRAIN_TIME: Duration = Duration::from_secs(24);
/// The longest id of a request that a client may give.
pub const REQUEST_ID: usize = 64;
/// How much of a response is parsed for an error that its status does not show.
pub const PARSED_PREFIX: usize = 4 << 10;
/// How many names of tools have their own series in metrics, and as many of prompts, resources and clients.
pub const LABEL_VALUES: usize = 500;
/// The longest name in traces and metrics. A longer one is truncated.
pub const LABEL_BYTES: usize = 128;
/// The longest `tracestate` of a caller. A longer one is dropped.
pub const TRACE_STATE: usize = 512;
/// How many spans wait to be sent. More are lost.
pub const SPANS: usize = 2048;
/// How many of them are sent at once.
pub const SPANS_AT_ONCE: usize = 512;
/// How often they are sent, if there are fewer.
pub const SPANS_INTERVAL: Duration = Duration::from_secs(5);
/// How often metrics are sent.
pub const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// How long a collector may take for one request.
pub const COLLECTOR_TIME: Duration = Duration::from_secs(10);
/// The largest response of a collector that is read.
pub const COLLECTOR_RESPONSE: usize = 64 << 10;
/// How long a connection to a collector is kept for the next request.
pub const COLLECTOR_IDLE: Duration = Duration::from_secs(90);
/// How long sending the last traces and metrics may take when the proxy ends.
pub const FLUSH_TIME: Duration = Duration::from_secs(5);
/// The concurrent scrapes of the port for metrics. More wait.
pub const SCRAPES: usize = 16;
/// How long one of them may take.
pub const SCRAPE_TIME: Duration = Duration::from_secs(30);
/// The largest message that a webhook receives. A larger one is rejected.
pub const WEBHOOK_BODY: usize = 1 << 20;
/// How deep a message may nest that a webhook has changed.
pub const WEBHOOK_DEPTH: u32 = skep_mcp::DEPTH;
/// The operations of a webhook's patch.
pub const PATCH_OPERATIONS: usize = 256;
/// The timeouts that a webhook may have.
pub const WEBHOOK_TIME: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);
/// The largest secret that webhooks are signed with. Of a larger file, this much is read.
pub const SIGNING_SECRET: u64 = 64 << 10;
/// The concurrent requests to one service. More wait for their turn, as long as such a request may take.
pub const SERVICE_REQUESTS: usize = 256;
/// How many of them are about one caller.
pub const SERVICE_REQUESTS_OF_A_CALLER: usize = 64;
/// The largest response of a webhook or a policy decision point.
pub const SERVICE_RESPONSE: usize = 1 << 20;
/// The largest arguments that a policy decision point receives. A request with larger ones is rejected.
pub const DECISION_ARGUMENTS: usize = 1 << 20;
/// How long a policy decision point may take, unless its document sets another.
pub const DECISION_TIME: Duration = Duration::from_secs(30);
/// How long deciding about all items of a list may take. Items that are not decided by then are removed.
pub const DECISIONS_TIME: Duration = Duration::from_secs(30);
/// The items of one response that a policy decision point decides about. Others are removed.
pub const DECISIONS: usize = 1_000;
/// The concurrent requests for them.
pub const DECISIONS_AT_ONCE: usize = 16;
/// The tools whose hints are remembered for policies that read them. A server with more loses the hints of some.
pub const KNOWN_TOOLS: usize = 10_000;
/// How long reading the list of tools for such a policy may take.
pub const TOOL_LIST_TIME: Duration = Duration::from_secs(30);
/// How many lists are read for that at once, one for each caller.
pub const TOOL_LISTS_AT_ONCE: usize = 4;
/// How many callers are kept ready for decisions of policies.
pub const CALLERS: usize = 1_024;
/// About how many bytes they take when one is added.
pub const CALLERS_BYTES: usize = 32 << 20;
/// How many entries of the audit log wait to be written. More are lost, and counted.
pub const AUDIT_ENTRIES: usize = 8_192;
/// How many bytes of them wait.
pub const AUDIT_BYTES: usize = 16 << 20;
/// The longest text of a request in an entry, apart from the data that the configuration wants. A longer one is truncated.
pub const AUDIT_TEXT: usize = 1 << 10;
/// The largest body that is signed for AWS.
pub const SIGNED_BODY: usize = 10 << 20;
/// The stack of a thread that serves connections: enough for the largest policy, so that none needs another stack for each
/// decision. It is reserved, and takes no memory until it is used.
pub const STACK: usize = 34 << 20;
/// How much of it is in use when a policy decides, at most: as much as a thread has by default.
const STACK_IN_USE: usize = 2 << 20;
const _: () =
    assert!(STACK >= skep_authz::LARGEST_STACK + STACK_IN_USE, "STACK is too small for the largest policy");
/// How long the server of a proxy may take to end with it.
pub const END_TIME: Duration = Duration::from_secs(10);
/// How often it is looked whether the session of a caller who listens has ended.
pub const SESSION_CHECK: Duration = Duration::from_secs(60);
