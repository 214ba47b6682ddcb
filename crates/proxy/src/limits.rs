//! Every limit of the proxy.

use std::time::Duration;

pub use skep_gateway::limits::*;

/// The largest file of variables for the server.
pub const ENV_FILE: u64 = 1 << 20;
/// The largest `initialize` that is stored, to restore a session that its server has lost.
pub const INITIALIZE: usize = 64 << 10;
/// How long a request waits for the pods of its server to be ready.
pub const SERVER_START_TIME: Duration = Duration::from_secs(30);
/// How long requests wait for a server to listen whose pods are ready. Later ones are rejected at once until it does.
pub const SERVER_LISTEN_TIME: Duration = Duration::from_secs(10);
/// The same for a server in the cluster, whose container may have started a moment ago on a busy node. Together with
/// [`SERVER_START_TIME`] it is less than the minute for which clients wait.
pub const POD_LISTEN_TIME: Duration = Duration::from_secs(25);
/// How often a request that may be processed twice is sent again after its connection broke. A server that is being replaced may break
/// more than one.
pub const RESENDS: usize = 3;
/// How long they wait between two tries.
pub const SERVER_PAUSE: Duration = Duration::from_millis(100);
/// How long a proxy whose server has not been available yet is not ready. It is less than the 90 s that the operator's
/// startup probe allows.
pub const START_TIME: Duration = Duration::from_secs(75);
/// How old a response of the server may be for it to count as healthy without a check.
pub const HEALTH_AGE: Duration = Duration::from_secs(10);
/// How long a health check may take. The operator's probes wait for three seconds.
pub const HEALTH_TIME: Duration = Duration::from_secs(2);
/// How long a health check of the proxy waits for its server to become available. A probe comes every second, and has
/// three for both.
pub const HEALTH_HOLD: Duration = Duration::from_secs(1);
/// How long a proxy whose server was deleted waits to be deleted, before it exits and is restarted.
pub const DELETED_TIME: Duration = Duration::from_secs(15);
/// How often applying a server's objects is tried, when other clients write them at the same time or the API server does
/// not respond.
pub const APPLY_TRIES: usize = 20;
/// How long one such try may take.
pub const APPLY_TIME: Duration = Duration::from_secs(30);
/// How long the first pause between two such tries is; each is twice as long as the one before, and has jitter.
pub const APPLY_PAUSE_LEAST: Duration = Duration::from_millis(20);
/// How long such a pause becomes.
pub const APPLY_PAUSE_MOST: Duration = Duration::from_secs(3);
/// How long the first pause is after which objects are restored that were changed again; each is twice as long as the one before.
pub const KEEP_PAUSE_LEAST: Duration = Duration::from_secs(1);
/// How long such a pause becomes: what runs is restored within half a minute.
pub const KEEP_PAUSE_MOST: Duration = Duration::from_secs(30);
/// How long nothing must have been restored, so that a change is restored at once again.
pub const KEEP_CALM: Duration = Duration::from_secs(60);
/// How often discovery of the kind of cluster is tried.
pub const DISCOVERY_TRIES: usize = 6;
/// How long one such request may take.
pub const DISCOVERY_TIME: Duration = Duration::from_secs(10);
/// How long the first pause between two such requests is.
pub const DISCOVERY_PAUSE_LEAST: Duration = Duration::from_secs(1);
/// How long such a pause becomes.
pub const DISCOVERY_PAUSE_MOST: Duration = Duration::from_secs(3);
/// How often one call tries to attach to a stdio server before it returns an error.
pub const ATTACH_TRIES: usize = 8;
/// How long attaching to a pod may take.
pub const ATTACH_TIME: Duration = Duration::from_secs(15);
/// How long the first pause between two tries to attach is.
pub const ATTACH_PAUSE_LEAST: Duration = Duration::from_secs(1);
/// How long such a pause becomes.
pub const ATTACH_PAUSE_MOST: Duration = Duration::from_secs(30);
/// How long an attachment must have lasted for the next one to be without a pause.
pub const ATTACH_STABLE: Duration = Duration::from_secs(60);
/// The buffers of a stdio server's output and input.
pub const ATTACH_BUFFER: usize = 64 << 10;
/// The longest line of a stdio server. A longer one is skipped.
pub const STDIO_LINE: usize = 32 << 20;
/// The longest line of a stdio server's standard error in the log. A longer one is truncated.
pub const STDIO_LOG_LINE: usize = 8 << 10;
/// How many messages wait for a stdio server to read them. More wait in the clients' requests.
pub const STDIO_QUEUE: usize = 64;
/// How many messages of the proxy itself wait for a stdio server: cancellations, and ends of subscriptions.
pub const STDIO_OWN_QUEUE: usize = 20_000;
/// How many requests a stdio server has at once.
pub const STDIO_REQUESTS: usize = 10_000;
/// How many of them are of one caller.
pub const STDIO_REQUESTS_OF_A_CALLER: usize = 1_000;
/// The same for anonymous callers at one address.
pub const STDIO_REQUESTS_OF_AN_ADDRESS: usize = 5_000;
/// How many of them are of one session.
pub const SESSION_REQUESTS: usize = 256;
/// How many requests of a stdio server wait for a client's response.
pub const STDIO_SERVER_REQUESTS: usize = 1_000;
/// How many resources one session is subscribed to.
pub const SESSION_SUBSCRIPTIONS: usize = 1_000;
/// How many resources a stdio server watches for all sessions.
pub const SUBSCRIPTIONS: usize = 10_000;
/// The longest address of a resource that can be subscribed to.
pub const SUBSCRIPTION: usize = 8 << 10;
/// How long a stdio server may take to respond, or to report progress, unless the environment sets another time.
pub const REQUEST_TIME: Duration = Duration::from_secs(60);
/// How long a stdio server may take to respond, also when it reports progress.
pub const LONGEST_REQUEST: Duration = Duration::from_secs(60 * 60);
/// How long a stdio server may process a request that was cancelled. What it sends until then is not for other clients.
pub const CANCEL_TIME: Duration = Duration::from_secs(5);
/// The longest id of a request that its client can cancel after it has disconnected.
pub const ABANDONED_ID: usize = 256;
/// How long a request waits for a stdio server to start.
pub const STDIO_START_TIME: Duration = Duration::from_secs(30);
/// How long a stdio server may take to end by itself, and again after SIGTERM.
pub const STDIO_END_TIME: Duration = Duration::from_secs(3);
/// How soon a stdio server that has ended is started again. The next wait is twice as long.
pub const RESTART_FIRST: Duration = Duration::from_millis(100);
/// How long the waits become at most.
pub const RESTART_LAST: Duration = Duration::from_secs(30);
/// How long a stdio server must run for the wait to be reset.
pub const RESTART_RESET: Duration = Duration::from_secs(60);
/// How often expired sessions are removed.
pub const SWEEP: Duration = Duration::from_secs(30);
/// How many events wait for the reader of a stream. One that is slower loses its stream.
pub const STREAM_EVENTS: usize = 256;
/// How many bytes wait for the reader of a stream, apart from one event that may be larger.
pub const STREAM_BYTES: usize = 4 << 20;
/// How many of them are not counted among [`BODIES`].
pub const STREAM_UNCOUNTED: usize = 16 << 10;
/// How often something is sent on a stream on which nothing happens.
pub const KEEP_ALIVE: Duration = Duration::from_secs(30);
