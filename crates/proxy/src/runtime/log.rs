//! The standard error of a server.

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tracing::info;

use crate::limits;

/// Logs what a server writes to its standard error, line by line. A line that is too long is truncated.
pub async fn log(errors: impl AsyncRead + Unpin) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = limits::STDIO_LOG_LINE as u64;
        match (&mut errors).take(limit).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                info!(target: "server", "{}", text.trim_end());
            }
        }
    }
}
