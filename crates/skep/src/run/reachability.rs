//! Why a remote server is unreachable.

use std::time::Duration;

use http::Uri;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

/// The timeout of each check.
const TIME: Duration = Duration::from_secs(5);

/// A message with the reason. `otherwise` is the reason if the network is not.
pub(super) async fn unreachable(url: &str, otherwise: &str) -> String {
    let why = why(url).await.unwrap_or_else(|| otherwise.to_owned());
    format!("{url} is unreachable: {why}")
}

async fn why(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let host = url.host()?.trim_matches(['[', ']']);
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    let addresses: Vec<_> = match timeout(TIME, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => addresses.collect(),
        _ => return Some(format!("cannot resolve {host}: check the network and the name")),
    };
    match timeout(TIME, TcpStream::connect(addresses.as_slice())).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("{host}:{port}: {error}")),
        Err(_) => Some(format!("{host}:{port} does not respond")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_message_has_the_reason() {
        let message = unreachable("https://nowhere.invalid/mcp", "x").await;
        let expected = "https://nowhere.invalid/mcp is unreachable: cannot resolve nowhere.invalid: check the \
                        network and the name";
        assert_eq!(message, expected);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        assert_eq!(unreachable(&url, "it hums").await, format!("{url} is unreachable: it hums"));
        drop(listener);
        assert!(unreachable(&url, "it hums").await.contains("refused"));
    }
}
