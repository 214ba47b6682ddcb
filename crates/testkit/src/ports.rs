//! Ports for programs that cannot choose one themselves.

use std::{
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::Range,
    process,
    sync::{Mutex, PoisonError},
};

/// Below those that the system gives to connections, one of which could take a port before the program listens; and apart from those
/// that `skep run` and the programs of compatibility tests choose.
const PORTS: Range<u16> = 11_000..20_000;

/// The ports of this process. Each is a socket of UDP, where nothing listens in tests: it keeps the number from other processes for as
/// long as this one runs, and leaves TCP to the program.
static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A port of TCP on which nothing listens, and which no other test gets while this one runs.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    // Each test is a process: they start at different places, so that they rarely try the same.
    let count = u32::from(PORTS.end - PORTS.start);
    let first = process::id().wrapping_mul(31) % count;
    let mut ports = (0..count).map(|offset| PORTS.start + ((first + offset) % count) as u16);
    let (port, socket) = ports.find_map(|port| Some((port, take(port)?))).expect("a free port");
    taken.push(socket);
    port
}

fn take(port: u16) -> Option<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).ok()?;
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).ok()?;
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_can_be_listened_on() {
        let ports = [free_port(), free_port(), free_port()];
        assert_eq!(ports.iter().collect::<std::collections::HashSet<_>>().len(), ports.len(), "{ports:?}");
        for port in ports {
            assert_eq!(take(port).map(|_| port), None, "another process does not get it");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }
}
