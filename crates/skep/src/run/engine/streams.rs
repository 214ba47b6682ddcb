//! The output of a container: standard output and standard error in one stream.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, copy};

/// The kind of a frame with standard error. All others are standard output.
const ERRORS: u8 = 2;

/// Splits the stream: each frame has its kind in the first byte of its header, and its length in the last four.
pub(super) async fn demultiplex(
    mut stream: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    mut errors: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    loop {
        let mut head = [0; 8];
        match stream.read_exact(&mut head).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        };
        let [kind, _, _, _, length @ ..] = head;
        let mut frame = (&mut stream).take(u32::from_be_bytes(length).into());
        if kind == ERRORS {
            copy(&mut frame, &mut errors).await?;
        } else {
            copy(&mut frame, &mut output).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_and_errors_are_split_wherever_frames_end() {
        let frame = |kind: u8, text: &str| {
            let length = u32::try_from(text.len()).unwrap().to_be_bytes();
            [&[kind, 0, 0, 0][..], &length, text.as_bytes()].concat()
        };
        let stream =
            [frame(1, "{\"a\""), frame(2, "oh"), frame(1, ":1}\n"), frame(2, " no"), frame(1, "")].concat();
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        demultiplex(stream.as_slice(), &mut output, &mut errors).await.unwrap();
        assert_eq!((output.as_slice(), errors.as_slice()), (&b"{\"a\":1}\n"[..], &b"oh no"[..]));
    }
}
