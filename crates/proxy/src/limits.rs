//! Every limit of the proxy.

use std::{ops::RangeInclusive, time::Duration};

/// The largest body of a request, unless the RunConfig says otherwise.
pub const REQUEST_BODY: usize = 8 << 20;
/// The largest answer that is looked into, to leave something out of a list. A larger one is not let through.
pub const FILTERED_BODY: usize = 32 << 20;
/// The largest event of a stream that is looked into.
pub const FILTERED_EVENT: usize = 8 << 20;
/// The most bytes of bodies that are held at once, for all connections, apart from the first 16 KiB of each. Who would
/// need more is told to come back.
pub const BODIES: usize = 128 << 20;
/// The largest file of variables for the server.
pub const ENV_FILE: u64 = 1 << 20;
/// How many sessions are kept. When there are as many, no new one begins.
pub const SESSIONS: usize = 100_000;
/// How long an idle session lives, unless the RunConfig says otherwise.
pub const SESSION_LIFE: Duration = Duration::from_secs(2 * 60 * 60);
/// How many sessions that clients ended are remembered, so that none of them is restored.
pub const ENDED_SESSIONS: usize = 10_000;
/// The largest `initialize` that is kept, to begin a session anew when its server has lost it.
pub const INITIALIZE: usize = 64 << 10;
/// How long a Redis that sessions or limits are in may take to answer, with all that is needed for it.
pub const REDIS_TIME: Duration = Duration::from_secs(3);
/// How much of that a connection to it may take.
pub const REDIS_CONNECT_TIME: Duration = Duration::from_secs(2);
/// How much of that its answer may take.
pub const REDIS_ANSWER_TIME: Duration = Duration::from_secs(2);
/// How long one that cannot be reached is left alone.
pub const REDIS_PAUSE: Duration = Duration::from_millis(500);
/// How long it may take to be there when the proxy starts.
pub const REDIS_START_TIME: Duration = Duration::from_secs(10);
/// How far apart complaints about it are in the log.
pub const REDIS_LOG_PAUSE: Duration = Duration::from_secs(10);
/// The longest name that is part of a key in Redis. Of a longer one, its digest is.
pub const REDIS_NAME: usize = 256;
/// How many token buckets are kept in memory. A caller who comes when there are as many has none of their own.
pub const BUCKETS: usize = 100_000;
/// How many connections are served at once. More wait to be accepted.
pub const CONNECTIONS: usize = 10_000;
/// The largest head of a request, and how much of a connection is read or written at once. As many are held as there are
/// connections, and a token may have half of it.
pub const HEAD: usize = 64 << 10;
/// How long the head of a request for metrics may take.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a connection may wait for its next request to begin and its head to be complete: longer than the minute for
/// which load balancers keep connections, so that it is not ended just as they use it.
pub const IDLE_TIME: Duration = Duration::from_secs(120);
/// How long the body of a request may take.
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a connection to the server may take.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How many redirects of the server are followed.
pub const REDIRECTS: usize = 10;
/// How long a request waits for the pods of its server to be ready.
pub const SERVER_START_TIME: Duration = Duration::from_secs(30);
/// How long requests wait for a server to listen whose pods are ready. Later ones are refused at once until it does.
pub const SERVER_LISTEN_TIME: Duration = Duration::from_secs(10);
/// The same for a server in the cluster, whose container may have started a moment ago on a busy node. Together with
/// [`SERVER_START_TIME`] it is less than the minute for which clients wait.
pub const POD_LISTEN_TIME: Duration = Duration::from_secs(25);
/// How long they wait between two tries.
pub const SERVER_PAUSE: Duration = Duration::from_millis(100);
/// How long a proxy whose server has not been there yet is not ready. It is less than the 90 s that the operator's
/// startup probe allows.
pub const START_TIME: Duration = Duration::from_secs(75);
/// How old an answer of the server may be for it to be called healthy without asking.
pub const HEALTH_AGE: Duration = Duration::from_secs(10);
/// How long it may take to answer when it is asked. The operator's probes wait for three seconds.
pub const HEALTH_TIME: Duration = Duration::from_secs(2);
/// How long a question for the health of a proxy waits for its server to come up. A probe comes every second, and has
/// three for both.
pub const HEALTH_HOLD: Duration = Duration::from_secs(1);
/// How long a proxy whose server was deleted waits to be ended, before it ends by itself and is started again.
pub const GONE_TIME: Duration = Duration::from_secs(15);
/// How long a proxy in a pod goes on to take requests when it is asked to end: its Service is told at the same time, and
/// sends it some until every node knows.
pub const LEAVE_TIME: Duration = Duration::from_secs(5);
/// How long requests may go on then. A pod has 30 seconds for both.
pub const DRAIN_TIME: Duration = Duration::from_secs(24);

/// The longest id of a request that a client may give.
pub const REQUEST_ID: usize = 64;
/// How much of an answer is looked into for an error that HTTP does not tell.
pub const LOOKED_INTO: usize = 4 << 10;
/// How many names of tools have series of their own in metrics, and as many of prompts, resources and clients.
pub const LABEL_VALUES: usize = 500;
/// The longest name in traces and metrics. A longer one is cut.
pub const LABEL_BYTES: usize = 128;
/// The longest state that a caller's trace may bring along. A longer one is left out.
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
/// The largest answer of a collector that is read.
pub const COLLECTOR_ANSWER: usize = 64 << 10;
/// How long a connection to a collector is kept for the next request.
pub const COLLECTOR_IDLE: Duration = Duration::from_secs(90);
/// How long sending the last traces and metrics may take when the proxy ends.
pub const FLUSH_TIME: Duration = Duration::from_secs(5);
/// How many may scrape the port for metrics at once. More wait.
pub const SCRAPES: usize = 16;
/// How long one of them may take.
pub const SCRAPE_TIME: Duration = Duration::from_secs(30);
/// The largest message that a webhook is asked about. A larger one is refused.
pub const JUDGED_BODY: usize = 1 << 20;
/// How deep a message may nest that a webhook has changed.
pub const JUDGED_DEPTH: u32 = skep_mcp::DEPTH;
/// The operations of a webhook's patch.
pub const PATCH_OPERATIONS: usize = 256;
/// How long a webhook may be given.
pub const WEBHOOK_TIME: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);
/// The largest secret that webhooks are signed with. Of a larger file, this much is taken.
pub const SIGNING_SECRET: u64 = 64 << 10;
/// The questions that one service is asked at once. More wait for their turn, within their own time.
pub const QUESTIONS: usize = 256;
/// The largest answer of a webhook or a policy decision point.
pub const ANSWER: usize = 1 << 20;
/// How long a policy decision point may take, unless its document says otherwise.
pub const DECISION_TIME: Duration = Duration::from_secs(30);
/// How long deciding about all items of a list may take. What is not decided by then is left out.
pub const DECISIONS_TIME: Duration = Duration::from_secs(30);
/// The items of one answer that a policy decision point is asked about. More are left out.
pub const DECISIONS: usize = 1_000;
/// How many of them at once.
pub const DECISIONS_AT_ONCE: usize = 16;
/// The largest body that is signed for AWS.
pub const SIGNED_BODY: usize = 10 << 20;

/// How often a server's objects are tried to be applied, when others write them at the same time or the API server does
/// not answer.
pub const APPLY_TRIES: usize = 20;
/// How long one such try may take.
pub const APPLY_TIME: Duration = Duration::from_secs(30);
/// How long the first pause between two such tries is; each is twice as long as the one before, and is stretched by chance.
pub const APPLY_PAUSE_LEAST: Duration = Duration::from_millis(20);
/// How long such a pause becomes.
pub const APPLY_PAUSE_MOST: Duration = Duration::from_secs(3);
/// How often the API server is asked what kind of cluster it is.
pub const DISCOVERY_TRIES: usize = 6;
/// How long one such question may take.
pub const DISCOVERY_TIME: Duration = Duration::from_secs(10);
/// How long the first pause between two such questions is.
pub const DISCOVERY_PAUSE_LEAST: Duration = Duration::from_secs(1);
/// How long such a pause becomes.
pub const DISCOVERY_PAUSE_MOST: Duration = Duration::from_secs(3);
/// How often one call tries to attach to a stdio server before it gives an error back.
pub const ATTACH_TRIES: usize = 8;
/// How long attaching to a pod may take.
pub const ATTACH_TIME: Duration = Duration::from_secs(15);
/// How long the first pause between two tries to attach is.
pub const ATTACH_PAUSE_LEAST: Duration = Duration::from_secs(1);
/// How long such a pause becomes.
pub const ATTACH_PAUSE_MOST: Duration = Duration::from_secs(30);
/// How long a stdio server must have been attached to for the next time to be without a pause.
pub const ATTACH_STABLE: Duration = Duration::from_secs(60);
/// How much of what a stdio server writes, and of what it is to read, is held for it.
pub const ATTACH_BUFFER: usize = 64 << 10;
/// The longest line that is read of a stdio server. A longer one is left out.
pub const STDIO_LINE: usize = 32 << 20;
/// The longest line of a stdio server's complaints in the log. A longer one is cut.
pub const STDIO_LOG_LINE: usize = 8 << 10;
/// How many messages wait for a stdio server to read them. More wait at the clients' end.
pub const STDIO_QUEUE: usize = 64;
/// How many requests a stdio server has at once.
pub const STDIO_REQUESTS: usize = 10_000;
/// How many of them are of one session.
pub const SESSION_REQUESTS: usize = 256;
/// How many requests of a stdio server wait for a client's answer.
pub const STDIO_ASKED: usize = 1_000;
/// How many resources one session is subscribed to.
pub const SESSION_SUBSCRIPTIONS: usize = 1_000;
/// How many resources a stdio server watches for all sessions.
pub const SUBSCRIPTIONS: usize = 10_000;
/// The longest address of a resource that can be subscribed to.
pub const SUBSCRIPTION: usize = 8 << 10;
/// How long a stdio server may take to answer, or to report progress, unless the environment says otherwise.
pub const REQUEST_TIME: Duration = Duration::from_secs(60);
/// How long a stdio server may take to answer, whatever progress it reports.
pub const LONGEST_REQUEST: Duration = Duration::from_secs(60 * 60);
/// How long a request waits for a stdio server to start.
pub const STDIO_START_TIME: Duration = Duration::from_secs(30);
/// How long a stdio server may take to end by itself, and again when it is asked to.
pub const STDIO_END_TIME: Duration = Duration::from_secs(3);
/// How soon a stdio server that has ended is started again. The next wait is twice as long.
pub const RESTART_FIRST: Duration = Duration::from_millis(100);
/// How long the waits become at most.
pub const RESTART_LAST: Duration = Duration::from_secs(30);
/// How long a stdio server must run for its past to be forgotten.
pub const RESTART_FORGOTTEN: Duration = Duration::from_secs(60);
/// How often it is looked which sessions have ended by themselves.
pub const SWEEP: Duration = Duration::from_secs(30);
/// How many events wait for the reader of a stream. One that is slower loses its stream.
pub const STREAM_EVENTS: usize = 256;
/// How many bytes wait for the reader of a stream, apart from one event that may be larger.
pub const STREAM_BYTES: usize = 4 << 20;
/// How often something is sent on a stream on which nothing happens.
pub const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long the server of a proxy may take to end with it.
pub const END_TIME: Duration = Duration::from_secs(10);
