//! Every limit of the proxy.

use std::time::Duration;

/// The largest body of a request, unless the RunConfig says otherwise.
pub const REQUEST_BODY: usize = 8 << 20;
/// The largest answer that is looked into, to leave something out of a list. A larger one is not let through.
pub const FILTERED_BODY: usize = 32 << 20;
/// The largest event of a stream that is looked into.
pub const FILTERED_EVENT: usize = 8 << 20;
/// How many sessions are kept. When there are as many, no new one begins.
pub const SESSIONS: usize = 100_000;
/// How long an idle session lives, unless the RunConfig says otherwise.
pub const SESSION_LIFE: Duration = Duration::from_secs(2 * 60 * 60);
/// The largest `initialize` that is kept, to begin a session anew when its server has lost it.
pub const INITIALIZE: usize = 64 << 10;
/// How many connections are served at once. More wait to be accepted.
pub const CONNECTIONS: usize = 10_000;
/// How long the head of a request may take.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long the body of a request may take.
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a connection to the server may take.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How many redirects of the server are followed.
pub const REDIRECTS: usize = 10;
/// How long requests may go on when the proxy is asked to end.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);

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
