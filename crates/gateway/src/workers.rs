//! The threads that serve connections.
//!
//! Each has its own runtime, which keeps a connection and everything that belongs to it: what happens on one thread
//! wakes no other. Sessions, limits and the like are shared.

use std::{
    cell::Cell,
    future::Future,
    io,
    thread::{self, JoinHandle},
};

use tokio::{net::TcpStream, runtime, sync::oneshot};
use tracing::warn;

use crate::limits;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The number of the calling thread, from 0. Threads that are none of the workers count as the first.
pub(crate) fn number() -> usize {
    NUMBER.get()
}

/// How many threads there are at most, with the one that accepts connections.
pub(crate) fn most() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Threads that serve connections, beside the one that accepts them.
#[derive(Default)]
pub struct Workers {
    others: Vec<Worker>,
    turn: usize,
}

struct Worker {
    runtime: runtime::Handle,
    /// Ends the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Workers {
    /// One for each core but that of the calling thread.
    pub fn beside_this_thread() -> io::Result<Self> {
        let others = (1..most()).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Self { others, turn: 0 })
    }

    /// Serves a connection, on one thread after the other.
    pub fn serve<F>(
        &mut self,
        stream: TcpStream,
        served: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) -> io::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.turn = (self.turn + 1) % (self.others.len() + 1);
        let Some(worker) = self.turn.checked_sub(1).and_then(|other| self.others.get(other)) else {
            tokio::spawn(served(stream));
            return Ok(());
        };
        // Another runtime polls it from now on.
        let stream = stream.into_std()?;
        worker.runtime.spawn(async move {
            match TcpStream::from_std(stream) {
                Ok(stream) => served(stream).await,
                Err(error) => warn!(%error, "failed to serve a connection"),
            }
        });
        Ok(())
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name(format!("worker-{number}")).stack_size(limits::STACK);
        let thread = thread.spawn(move || {
            NUMBER.set(number);
            runtime.block_on(async { stopped.await.ok() });
        })?;
        Ok(Self { runtime: handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A worker has no result: what it served reports its own errors.
            thread.join().ok();
        }
    }
}
