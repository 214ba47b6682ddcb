//! Tunnels through a proxy (RFC 9110, section 9.3.6).

use http::{HeaderValue, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::EgressError;

/// The largest response to CONNECT.
const LONGEST: usize = 16 << 10;

/// Opens a tunnel to `host:port` on a connection to the proxy at `place`.
pub(crate) async fn open(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: &str,
    authorization: Option<&HeaderValue>,
    place: &str,
) -> Result<(), EgressError> {
    let broken = |source: std::io::Error| EgressError::Unreachable(place.into(), source.into());
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(authorization) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte: what follows is not the proxy's. It is short, and read once for each connection.
        let byte = stream.read_u8().await.map_err(broken)?;
        head.push(byte);
        if head.len() > LONGEST {
            return Err(EgressError::Malformed(place.into()));
        }
    }
    match status(&head) {
        Some(status) if status.is_success() => Ok(()),
        // Some proxies return the status for hosts.
        Some(StatusCode::PROXY_AUTHENTICATION_REQUIRED | StatusCode::UNAUTHORIZED) => {
            Err(EgressError::Unauthorized(place.into()))
        }
        Some(status) => Err(EgressError::Rejected(place.into(), status)),
        None => Err(EgressError::Malformed(place.into())),
    }
}

fn status(head: &[u8]) -> Option<StatusCode> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = line.split(|byte| *byte == b' ');
    words.next().filter(|version| version.starts_with(b"HTTP/1."))?;
    StatusCode::from_bytes(words.next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn opened(answer: &str) -> (Result<(), String>, String) {
        let (mut ours, mut theirs) = tokio::io::duplex(64 << 10);
        theirs.write_all(answer.as_bytes()).await.unwrap();
        let authorization = HeaderValue::from_static("Basic YTpi");
        let opened = open(&mut ours, "a.example:443", Some(&authorization), "proxy:1").await;
        drop(ours);
        let mut sent = String::new();
        theirs.read_to_string(&mut sent).await.unwrap();
        (opened.map_err(|error| error.to_string()), sent)
    }

    #[tokio::test]
    async fn a_tunnel_is_open_after_a_success_and_every_other_response_is_an_error() {
        let (ok, sent) = opened("HTTP/1.1 200 Connection established\r\nA: b\r\n\r\n").await;
        assert_eq!(ok, Ok(()));
        assert_eq!(
            sent,
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic YTpi\r\n\r\n"
        );
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(LONGEST));
        for (answer, message) in [
            ("HTTP/1.1 403 Forbidden\r\n\r\n", "the egress proxy proxy:1 responded with 403 Forbidden"),
            ("HTTP/1.1 401 Unauthorized\r\n\r\n", "the egress proxy proxy:1 does not accept the credentials"),
            ("HTTP/1.1 407 Authenticate\r\n\r\n", "the egress proxy proxy:1 does not accept the credentials"),
            ("SSH-2.0-OpenSSH\r\n\r\n", "the response of the egress proxy proxy:1 is malformed"),
            (&long, "the response of the egress proxy proxy:1 is malformed"),
        ] {
            let (error, _) = opened(answer).await;
            assert_eq!(error.unwrap_err(), message);
        }
    }
}
