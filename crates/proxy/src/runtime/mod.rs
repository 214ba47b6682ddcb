//! Where a server runs that is the proxy's own, and how a stdio server among them is spoken to.

mod input;
mod local;
mod log;

use std::{future::Future, io};

use tokio::io::{AsyncRead, AsyncWrite};

pub mod kubernetes;

pub use input::Input;
pub use local::Local;
pub use log::log;

/// What a server writes to its standard output. It ends when the server does.
pub type BoxRead = Box<dyn AsyncRead + Send + Unpin>;
/// The standard input of a server.
pub type BoxWrite = Box<dyn AsyncWrite + Send + Unpin>;

/// Speaking to a server over its standard input and output.
pub trait Attach {
    /// The output and the input of the server that runs now: `async fn attach(&self)` for implementers.
    ///
    /// It waits until there is a server to speak to. When the output ends, the server has, and the next call speaks to
    /// its successor: a server that ends again and again is attached to ever more slowly. An error is for the caller to
    /// judge, who may call again.
    fn attach(&self) -> impl Future<Output = io::Result<(BoxRead, BoxWrite)>> + Send;
}
