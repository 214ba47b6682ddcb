//! Ports and programs of this machine.

use std::{env, io, path::Path};

use skep_config::FieldError;
use tokio::net::TcpListener;

use super::plan::COMMAND;

/// The default port, if it is free.
const USUAL_PORT: u16 = 8080;

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

/// Binds the port of the manifest, which must be free, or any port if it sets none.
pub(super) async fn listener(
    configured: Option<u16>,
    previous: Option<u16>,
) -> Result<TcpListener, FieldError> {
    let bind = |port| TcpListener::bind(("127.0.0.1", port));
    if let Some(port) = configured {
        let taken = |error: io::Error| {
            let message =
                format!("cannot listen on 127.0.0.1:{port}: {error}: choose another, or leave it out");
            FieldError::new("spec.proxyPort", message)
        };
        return bind(port).await.map_err(taken);
    }
    for port in [previous.unwrap_or(USUAL_PORT), 0] {
        if let Ok(listener) = bind(port).await {
            return Ok(listener);
        }
    }
    Err(FieldError::new("", "no free port on 127.0.0.1"))
}

pub(super) async fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?.port())
}
