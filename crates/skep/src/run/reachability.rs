//! Why a server that is elsewhere cannot be reached.

use std::time::Duration;

use http::Uri;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

/// How long it may take to find out.
const TIME: Duration = Duration::from_secs(5);

/// A sentence that says it. `otherwise` is what is known if the network is not the reason.
pub(super) async fn unreachable(url: &str, otherwise: &str) -> String {
    let why = why(url).await.unwrap_or_else(|| otherwise.to_owned());
    format!("{url} cannot be reached: {why}")
}

async fn why(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let host = url.host()?.trim_matches(['[', ']']);
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    let addresses: Vec<_> = match timeout(TIME, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => addresses.collect(),
        _ => return Some(format!("no address is known for {host}: look after the network, or the name")),
    };
    match timeout(TIME, TcpStream::connect(addresses.as_slice())).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("{host}:{port}: {error}")),
        Err(_) => Some(format!("{host}:{port} does not answer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_reason_is_told_in_words() {
        let said = unreachable("https://nowhere.invalid/mcp", "x").await;
        let expected = "https://nowhere.invalid/mcp cannot be reached: no address is known for nowhere.invalid: look \
                        after the network, or the name";
        assert_eq!(said, expected);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        assert_eq!(unreachable(&url, "it hums").await, format!("{url} cannot be reached: it hums"));
        drop(listener);
        assert!(unreachable(&url, "it hums").await.contains("refused"));
    }
}
