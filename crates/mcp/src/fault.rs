//! Faults of messages.

/// Why bytes are not a message that policies can decide about and that can be forwarded.
///
/// A fault names the position and the problem, never the value: messages contain secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// JSON-RPC is UTF-8.
    #[error("the message is not UTF-8 (byte {at})")]
    NotUtf8 {
        /// The first byte that is not.
        at: usize,
    },
    /// RFC 8259 forbids it, and servers disagree about it.
    #[error("the message begins with a byte order mark")]
    ByteOrderMark,
    /// Something that JSON does not allow.
    #[error("the message is not JSON: expected {expected} (byte {at})")]
    NotJson {
        /// Where it is.
        at: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// It is nested too deep.
    #[error("the message has more than {depth} nested objects and arrays")]
    TooDeep {
        /// The bound.
        depth: u32,
    },
    /// Half of a surrogate pair in a string that is decided on.
    #[error("a string has half of a surrogate pair (byte {at})")]
    LoneSurrogate {
        /// Where the string starts.
        at: usize,
    },
    /// MCP had batches in 2025-03-26 only, and removed them.
    #[error("batches are not supported: send one message at a time")]
    Batch,
    /// `jsonrpc` is missing or something else.
    #[error("jsonrpc must be \"2.0\"")]
    NotJsonRpc,
    /// Two keys that are equal ignoring case, where one is decided on.
    #[error("{0} is duplicated (case is ignored)")]
    Duplicate(&'static str),
    /// A key that is decided on, in the wrong case.
    #[error("{0} has the wrong case")]
    Lookalike(&'static str),
    /// A value that policies read, and that two parsers may read differently.
    #[error(
        "{0} has a duplicate key, too many keys, half of a surrogate pair, or a number that is out of range"
    )]
    Ambiguous(&'static str),
    /// A value of the wrong type.
    #[error("{field} must be {expected}")]
    WrongType {
        /// The field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A required field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// Neither a request nor a response, or both.
    #[error("the message must have a method, or a result, or an error, and only one of them")]
    Unclear,
}
