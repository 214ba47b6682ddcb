//! Every limit of the console.

use std::time::Duration;

/// How many streams of changes are open at once.
pub(crate) const STREAMS: usize = 64;
/// How many changes a stream may be behind. Then the page reads all objects again.
pub(crate) const BEHIND: usize = 1024;
/// How often figures about traffic are sent.
pub(crate) const TRAFFIC_TIME: Duration = Duration::from_secs(1);
/// How often a stream without changes sends a comment, so that nothing on the path takes it for dead.
pub(crate) const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
/// How many events are kept for each object.
pub(crate) const EVENTS: usize = 50;
/// How many requests to MCP servers are in flight at once.
pub(crate) const MCP_REQUESTS: usize = 32;
/// The largest message to an MCP server.
pub(crate) const MESSAGE: usize = 8 << 20;
/// How long the body of a request may take to arrive.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
