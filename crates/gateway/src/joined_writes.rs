//! Small writes in one system call.
//!
//! hyper gives the head of a message and its body to the connection as two pieces. To write both with `writev` takes the kernel longer
//! than to write one piece, and longer than to copy a small body after its head.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Up to how many bytes pieces are copied.
const SMALL: usize = 4096;

thread_local! {
    static COPY: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(SMALL));
}

/// A stream that writes small pieces together.
pub(crate) struct JoinedWrites<S>(pub(crate) S);

impl<S: AsyncRead + Unpin> AsyncRead for JoinedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for JoinedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.0);
        if slices.iter().map(|slice| slice.len()).sum::<usize>() > SMALL {
            return stream.poll_write_vectored(context, slices);
        }
        COPY.with_borrow_mut(|copy| {
            copy.clear();
            for slice in slices {
                copy.extend_from_slice(slice);
            }
            stream.poll_write(context, copy)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Takes up to ten bytes with a write, and records how each was called.
    #[derive(Default)]
    struct Narrow {
        written: Vec<u8>,
        calls: Vec<&'static str>,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(10);
            self.written.extend_from_slice(&bytes[..taken]);
            self.calls.push("write");
            Poll::Ready(Ok(taken))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.calls.push("writev");
            Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn small_pieces_are_written_in_order_and_large_ones_are_not_copied() {
        let mut stream = JoinedWrites(Narrow::default());
        let large = vec![0; SMALL];
        for (slices, expected) in [
            ([&b"head "[..], &b"body"[..]], 9),
            // What was not taken is given again by the caller.
            ([b"12345678", b"90abc"], 10),
            ([b"head", &large], 4 + SMALL),
        ] {
            let slices = slices.map(IoSlice::new);
            let taken = poll_fn(|context| Pin::new(&mut stream).poll_write_vectored(context, &slices)).await;
            assert_eq!(taken.unwrap(), expected);
        }
        assert_eq!(stream.0.written, b"head body1234567890");
        assert_eq!(stream.0.calls, ["write", "write", "writev"]);
        COPY.with_borrow(|copy| assert!(copy.capacity() <= SMALL));
    }
}
