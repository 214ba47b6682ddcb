//! The names of the machine itself.

use std::net::IpAddr;

use http::uri::Authority;

/// Whether a host, with or without a port, is a name of the machine of whoever sends it.
pub fn is_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_name = name == "localhost" || name.ends_with(".localhost");
    let is_address = || name.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback());
    !host.contains('@') && (is_name || is_address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_known_by_its_names() {
        for host in [
            "localhost",
            "localhost:8080",
            "LOCALHOST.:1",
            "a.localhost:1",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "console.example",
            "localhost.example:8080",
            "127.0.0.1.example",
            "10.0.0.1:8080",
            "[2001:db8::1]:80",
            "localhost@evil.example",
            "evil@localhost",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
