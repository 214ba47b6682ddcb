//! Running the proxy's server, and attaching to a stdio server.

mod guard;
mod inherited;
mod input;
mod local;
mod log;

use std::{future::Future, io};

use tokio::io::{AsyncRead, AsyncWrite};

pub mod kubernetes;

pub use guard::{Guard, kill_orphans};
pub use input::Input;
pub use local::Local;
pub use log::log;

/// What a server writes to its standard output. It ends when the server does.
pub type BoxRead = Box<dyn AsyncRead + Send + Unpin>;
/// The standard input of a server.
pub type BoxWrite = Box<dyn AsyncWrite + Send + Unpin>;

/// Attaches to the standard input and output of a server.
pub trait Attach {
    /// The output and the input of the server that runs now: `async fn attach(&self)` for implementers.
    ///
    /// It waits until the server runs. When the output ends, the server has, and the next call attaches to its
    /// successor: with a growing pause, if servers end again and again. After an error the caller may call again.
    fn attach(&self) -> impl Future<Output = io::Result<(BoxRead, BoxWrite)>> + Send;
}
