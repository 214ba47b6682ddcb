//! MCP messages as bytes.
//!
//! Of a message, only the envelope is parsed (its kind, its id, its method, its target, its `_meta`), and the bytes that were received are the bytes that are forwarded. Unknown fields, spellings of
//! numbers, the order of keys and ids survive because nothing is written again. Where something must change, such as an
//! id or a tool's name, that value is replaced in place ([`Edits`], [`filtered`]).
//!
//! Messages are parsed so that a policy and the server behind it cannot read two different things in one message: see
//! [`Envelope::parse`] for what is rejected. Nothing here does I/O, and reading an ordinary request allocates nothing.
//!
//! ```
//! # use skep_mcp::{Envelope, Method};
//! let received = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":1e2}}}"#;
//! let envelope = Envelope::parse(received)?;
//! assert_eq!(envelope.method(), Some(Method::ToolsCall));
//! assert_eq!(envelope.target().unwrap().name(), "echo");
//! assert_eq!(envelope.arguments().unwrap().as_str(), r#"{"n":1e2}"#);
//! # Ok::<(), skep_mcp::Fault>(())
//! ```

pub mod header;
pub mod sse;
pub mod stdio;

mod connect;
mod envelope;
mod fault;
mod id;
mod json;
mod list;
mod method;
mod owned;
mod params;
mod reply;
mod revision;
mod rewrite;
mod session_id;
mod splice;
mod target;

pub use connect::{CONNECT_INPUT, ConnectAnswer};
pub use envelope::{DEPTH, Envelope, Message, Outcome};
pub use fault::Fault;
pub use header::{Header, Headers};
pub use id::Id;
pub use json::{Kind, Object, Raw, Text, tree_size};
pub use list::{Item, List, ListError, Verdict, filtered, filtered_in};
pub use method::Method;
pub use owned::OwnedEnvelope;
pub use params::Meta;
pub use reply::{Rejection, empty_result};
pub use revision::{Era, Revision, RevisionFault, check_mirrors, era};
pub use rewrite::rewritten;
pub use session_id::{NotASessionId, SESSION_ID_BYTES, SessionId};
pub use splice::{Edits, Json, SpliceError};
pub use target::{Target, TargetKind};
