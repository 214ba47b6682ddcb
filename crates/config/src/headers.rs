//! Headers that only a proxy sets.

/// Those of a connection, with names in lower case.
const OF_A_CONNECTION: [&str; 12] = [
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a proxy sets the header itself, so that no configuration may: one of the connection, or about where a request comes from.
pub fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    OF_A_CONNECTION.contains(&name.as_str())
        || matches!(name.as_str(), "forwarded" | "x-real-ip")
        || name.starts_with("x-forwarded-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_proxy_sets_is_reserved_in_any_case() {
        for name in ["Host", "TE", "Proxy-Connection", "Forwarded", "X-Forwarded-Prefix", "X-Real-Ip"] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["Authorization", "X-Forwarded", "X-Real-Ip-Of", "Forwarded-By"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
