//! What this machine has: programs, ports and container engines.

use std::{env, io, net::TcpListener, path::Path, process::Command, sync::Arc};

use anyhow::Context;
use skep_config::FieldError;
use skep_proxy::runtime::Guard;
use tracing::warn;

use super::{
    engine::{self, Endpoint},
    plan::COMMAND,
};
use crate::orphans;

/// The ports of servers that configure none: outside of the range from which the kernel takes ports of connections.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// How many of them are tried.
const TRIES: u16 = 20;

/// What this machine can run servers with.
pub(super) struct Machine {
    /// This program, for commands that name it.
    pub(super) program: String,
    /// The endpoints of container engines, or where they were searched.
    pub(super) engines: Result<Vec<Endpoint>, String>,
    /// What ends processes if this one is killed.
    pub(super) guard: Option<Arc<Guard>>,
}

impl Machine {
    pub(super) fn new() -> anyhow::Result<Self> {
        let program = env::current_exe().context("cannot find the program itself")?;
        let engines = engine::endpoints(|name| env::var(name).ok());
        let mut command = Command::new(&program);
        command.arg(orphans::COMMAND);
        let guard = Guard::start(command).map(Arc::new);
        if let Err(error) = &guard {
            warn!(%error, "servers keep running if this process is killed: cannot start the process that ends them");
        }
        Ok(Self { program: program.to_string_lossy().into_owned(), engines, guard: guard.ok() })
    }
}

/// Checks that a program exists: a missing one would be retried forever.
pub(super) fn check_program(program: &str) -> Result<(), String> {
    let is_file = |path: &Path| path.is_file();
    let exists = if program.contains('/') {
        is_file(Path::new(program))
    } else {
        env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|folder| is_file(&folder.join(program))))
    };
    if exists {
        return Ok(());
    }
    let get = match program {
        "npx" => "install Node.js, which includes it",
        "uvx" => "install uv, which includes it",
        _ => "install it",
    };
    Err(format!("program {program} not found: {get}, or change the annotation {COMMAND}"))
}

/// Binds the port of the manifest, which must be free. If it sets none, the port follows from the identity of the
/// server, so that its URL is the same at each start, unless another process has that port.
pub(super) fn listener(configured: Option<u16>, id: &str) -> Result<TcpListener, FieldError> {
    if let Some(port) = configured {
        let taken = |error: io::Error| {
            let message =
                format!("cannot listen on 127.0.0.1:{port}: {error}: choose another, or leave it out");
            FieldError::new("spec.proxyPort", message)
        };
        return bind(port).map_err(taken);
    }
    let free = usual_ports(id).chain([0]).find_map(|port| bind(port).ok());
    free.ok_or_else(|| FieldError::new("", "no free port on 127.0.0.1"))
}

/// The same for a server, whose clients may be configured with its usual port.
pub(super) fn server_listener(configured: Option<u16>, id: &str) -> Result<TcpListener, FieldError> {
    let listener = listener(configured, id)?;
    let port = listener.local_addr().ok().map(|address| address.port());
    if let (None, Some(usual), Some(port)) = (configured, usual_ports(id).next(), port)
        && usual != port
    {
        warn!(
            server = id,
            usual,
            port,
            "another process has the usual port of this server, and is what clients with its usual URL reach"
        );
    }
    Ok(listener)
}

fn bind(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The ports of a server, the preferred one first.
fn usual_ports(id: &str) -> impl Iterator<Item = u16> {
    // FNV-1a: equal in every build.
    let hash =
        id.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let count = PORTS.end - PORTS.start;
    let first = u16::try_from(hash % u32::from(count)).unwrap_or_default();
    (0..TRIES).map(move |next| PORTS.start + (first + next) % count)
}

/// A free port for a server's process or container, which this process holds until that is started.
pub(super) struct ReservedPort {
    number: u16,
    _listener: TcpListener,
}

impl ReservedPort {
    pub(super) fn new() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        Ok(Self { number: listener.local_addr()?.port(), _listener: listener })
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_server_follows_from_its_identity() {
        let ports = |id: &str| usual_ports(id).collect::<Vec<_>>();
        // Clients are configured with it, and the quickstart has it.
        assert_eq!(ports("MCPServer/default/demo")[0], 29792);
        assert_ne!(ports("MCPServer/default/demo")[0], ports("MCPServer/default/other")[0]);
        assert!(ports("x").iter().all(|port| PORTS.contains(port)));
    }

    #[test]
    fn a_reserved_port_is_not_free_for_others() {
        let reserved = ReservedPort::new().unwrap();
        let port = reserved.number();
        assert!(bind(port).is_err());
        drop(reserved);
        assert!(bind(port).is_ok());
    }
}
