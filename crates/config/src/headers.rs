//! Headers that only a proxy sets.

/// Those of a connection, and those about where a request comes from, in lower case.
const RESERVED: [&str; 17] = [
    "connection",
    "content-length",
    "forwarded",
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
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Whether a proxy sets the header itself, so that no configuration may.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_proxy_sets_is_reserved_in_any_case() {
        for name in ["Host", "TE", "Proxy-Connection", "Forwarded", "X-Forwarded-Host", "X-Real-Ip"] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["Authorization", "X-Forwarded-Prefix", "X-Real-Ip-Of", "Forwarded-By"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
