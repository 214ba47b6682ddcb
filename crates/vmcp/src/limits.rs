//! Every limit of a virtual server. Those that it shares with the proxy are in `skep_gateway::limits`.

use std::time::Duration;

use skep_gateway::sessions::Shares;

/// How many items a page of a list has.
pub(crate) const PAGE_ITEMS: usize = 1_000;
/// How many pages of a backend's list are read.
pub(crate) const PAGES: usize = 1_000;
/// How many bytes a page has, and one item more.
pub(crate) const PAGE_BYTES: usize = 4 << 20;
/// How many items a backend may offer, in all its lists, and how many bytes they may have.
pub(crate) const ITEMS: usize = 20_000;
pub(crate) const LIST_BYTES: usize = 8 << 20;
/// How long a request waits for backends that were never listed. Their tools follow with `list_changed`.
pub(crate) const FIRST_LISTS_TIME: Duration = Duration::from_secs(5);
/// How long lists are used for new sessions without checking whether they have changed, where the backend does not send
/// `list_changed`.
pub(crate) const LISTS_AGE: Duration = Duration::from_secs(1);
/// How often a backend that announces changes is read, and a client is told of them, at most.
pub(crate) const CHANGES_PACE: Duration = LISTS_AGE;
/// How long lists are used that a backend may have for one caller only.
pub(crate) const OWN_LISTS_AGE: Duration = Duration::from_secs(30);
/// How long a backend takes to fail at least that is not asked for them again at once, and how long it is left alone. Its caller would
/// wait each time.
pub(crate) const SLOW_FAILURE: Duration = Duration::from_millis(500);
pub(crate) const UNLISTED_PAUSE: Duration = Duration::from_secs(30);
/// How long a new session waits for lists that are being checked.
pub(crate) const REFRESH_TIME: Duration = Duration::from_millis(500);
/// The largest message of a backend.
pub(crate) const MESSAGE: usize = 32 << 20;
/// How long a backend may take to send a message, unless it is configured.
pub(crate) const BACKEND_TIME: Duration = Duration::from_secs(30);
/// How many times as long a backend may take for a whole request, whatever it sends meanwhile. MCP demands a maximum, so that a
/// backend that sends progress for ever does not hold a call for ever.
pub(crate) const REQUEST_TIMES: u32 = 60;
/// How many times as long a backend may take until a session is opened, which needs several messages.
pub(crate) const OPENING_TIMES: u32 = 3;
/// Of how many requests that a client has given up the ids are known, where replicas share its session.
pub(crate) const GIVEN_UP_IDS: usize = 32;
/// The first and the longest pause before a backend is listened to again whose stream has ended. After one that lasted for longer
/// than that, the first one follows.
pub(crate) const LISTEN_PAUSE: Duration = Duration::from_millis(500);
pub(crate) const LISTEN_LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a stream that ends before the response is continued without hearing anything, the pause before unless the backend sets
/// one, and the least and the longest one.
pub(crate) const RESUME_ATTEMPTS: usize = 3;
pub(crate) const RESUME_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const RESUME_LEAST_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const RESUME_LONGEST_PAUSE: Duration = LISTEN_LONGEST_PAUSE;
/// The longest id of an event after which a stream is continued.
pub(crate) const EVENT_ID: usize = 1 << 10;
/// How many notifications of a backend with HTTP+SSE wait for the reader of one request, and how long its stream waits for one that
/// reads slowly. Beyond that, they are lost.
pub(crate) const WAITING_NOTIFICATIONS: usize = 64;
pub(crate) const READER_TIME: Duration = Duration::from_secs(1);
/// How long such a backend may send messages for a request that was given up, and that it was sent the cancellation of: what names no
/// request reaches nobody for so long.
pub(crate) const GIVEN_UP_TIME: Duration = Duration::from_secs(5);
/// How long a session lives without being used, unless it is configured.
pub(crate) const SESSION_LIFE: Duration = Duration::from_secs(30 * 60);
/// How many messages wait for a client that reads slowly. It loses the stream after that, and can open another.
pub(crate) const STREAM_QUEUE: usize = 256;
/// How many bytes they may have.
pub(crate) const STREAM_BYTES: usize = 4 << 20;
/// How many resources a session may subscribe to.
pub(crate) const SUBSCRIPTIONS: usize = 1_000;
/// The longest URI of one, and of what a template of resources is compared with, and the longest template.
pub(crate) const URI: usize = 2 << 10;
/// How many expressions such a template may have.
pub(crate) const TEMPLATE_EXPRESSIONS: usize = 16;
/// How many sessions at backends are waiting to be ended.
pub(crate) const ENDING_SESSIONS: usize = 10_000;
/// How many sessions at backends go on being opened, to be ended then, after the client's session has ended. Backends expire others.
pub(crate) const ENDING_UNOPENED: usize = 256;
/// How many of them are ended at the same time, and how long each may take.
pub(crate) const ENDING_AT_ONCE: usize = 16;
pub(crate) const END_SESSION_TIME: Duration = Duration::from_secs(5);
/// The pause between events that keep an idle stream open.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(30);
/// The largest `capabilities` of a client, and how many different ones are kept.
pub(crate) const CLIENT_CAPABILITIES: usize = 16 << 10;
pub(crate) const DIFFERENT_CAPABILITIES: usize = 500;
/// How long a client may take to provide input that a backend needs, as a person may have to be found.
pub(crate) const INPUT_TIME: Duration = Duration::from_secs(10 * 60);
/// How many inputs a backend may need at once, and how often for one request.
pub(crate) const INPUTS: usize = 16;
/// The longest id and the longest progress token of a request of a backend, in bytes.
pub(crate) const QUESTION_ID: usize = 1 << 10;
/// For how long backends may wait for the client in all, in the time of one request.
pub(crate) const INPUT_TIME_OF_ALL: Duration = Duration::from_secs(60 * 60);
pub(crate) const INPUT_ROUNDS: usize = 16;
/// How many calls wait for input of clients of 2026-07-28, and how many of one caller: the oldest makes room.
pub(crate) const PARKED_CALLS: usize = 1_000;
pub(crate) const PARKED_CALLS_OF_ONE: Shares = Shares { caller: 50, address: 200 };
/// How much of a workflow that waits for an answer is kept in Redis, in bytes, and how much longer than it may be answered.
pub(crate) const KEPT_RUN: usize = 256 << 10;
pub(crate) const KEPT_RUN_MARGIN: Duration = Duration::from_secs(60);
/// How many of them a replica keeps there, and how many of one caller: others go on at this replica only.
pub(crate) const KEPT_RUNS: usize = PARKED_CALLS;
pub(crate) const KEPT_RUNS_OF_ONE: Shares = PARKED_CALLS_OF_ONE;
/// How long it is tried to take such a run while Redis is unavailable, and the pause in between.
pub(crate) const TAKE_TIME: Duration = Duration::from_secs(10);
pub(crate) const TAKE_PAUSE: Duration = Duration::from_millis(500);
/// The pause between looks at Redis for an answer that another replica has received.
pub(crate) const ANSWER_PAUSE: Duration = Duration::from_millis(500);
/// How long replicas recognize answers to a question that is closed.
pub(crate) const ANSWERED_TIME: Duration = Duration::from_secs(60);
/// How long a call waits for the user to connect an account on the page that was opened, and how often it looks.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(20);
pub(crate) const CONNECT_PAUSE: Duration = Duration::from_millis(500);
/// How many calls of one caller wait for that at the same time. Others end at once with the address of the page.
pub(crate) const CONNECT_CALLS: usize = 8;
/// How many workflows one caller may have at the same time: some run, and others wait for an answer of the user.
pub(crate) const WORKFLOWS_OF_ONE: Shares = Shares { caller: 100, address: 400 };
/// How much memory all scripts may use, and those of one caller: the server's container has 512 MiB.
pub(crate) const SCRIPT_MEMORY: usize = 128 << 20;
pub(crate) const SCRIPT_MEMORY_OF_ONE: usize = 64 << 20;
/// How many scripts one caller may run at the same time.
pub(crate) const SCRIPTS_OF_ONE: usize = 50;
/// How long the description of the tool that runs scripts may be, how much of the description of each tool is in it, and how
/// many parameters of each.
pub(crate) const SCRIPT_DESCRIPTION: usize = 16 << 10;
pub(crate) const SCRIPT_TOOL_DESCRIPTION: usize = 80;
pub(crate) const SCRIPT_PARAMETERS: usize = 20;
/// How long a search waits for the vector of its query, and for how long it does not try again after that failed.
pub(crate) const QUERY_VECTOR_TIME: Duration = Duration::from_secs(1);
pub(crate) const QUERY_VECTOR_PAUSE: Duration = Duration::from_secs(5);
/// How long an embedding service may take for a batch of tools, unless it is configured, and its largest response.
pub(crate) const EMBEDDING_TIME: Duration = Duration::from_secs(30);
pub(crate) const EMBEDDING_RESPONSE: usize = 8 << 20;
/// The first and the longest pause before tools are embedded again, after that failed.
pub(crate) const EMBEDDING_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const EMBEDDING_LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How much of the description and of each keyword of find_tool counts, in bytes, and how many keywords do.
pub(crate) const SEARCH_TEXT: usize = 4 << 10;
pub(crate) const SEARCH_KEYWORD: usize = 256;
pub(crate) const SEARCH_KEYWORDS: usize = 64;
/// How long a probe waits for the server to become ready.
pub(crate) const READY_TIME: Duration = Duration::from_millis(500);
