//! Where the server runs that a proxy speaks to over its standard input and output.

mod local;

use std::{future::Future, io};

use tokio::io::{AsyncRead, AsyncWrite};

pub use local::Local;

/// The output of a server.
pub type BoxRead = Box<dyn AsyncRead + Send + Unpin>;
/// The input of a server.
pub type BoxWrite = Box<dyn AsyncWrite + Send + Unpin>;

/// A way to the standard input and output of one server.
pub trait Attach {
    /// Starts the server if it does not run, and gives its output and its input.
    ///
    /// It is asked again once the output has ended, or the input cannot be written to; both are dropped before that. To
    /// shut the input down is to be done with the server, and returns when that is so.
    fn attach(&self) -> impl Future<Output = io::Result<(BoxRead, BoxWrite)>> + Send;
}
