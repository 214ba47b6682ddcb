//! What of this machine a server needs to be free, or to be there.

use std::{env, io, path::Path};

use tokio::net::TcpListener;

use super::plan::COMMAND;

/// The port that is taken if it is free, and the manifest names none.
const USUAL_PORT: u16 = 8080;

/// A program that is not there would be tried for ever.
pub(super) fn findable(program: &str) -> Result<(), String> {
    let is_file = |path: &Path| path.is_file();
    let found = if program.contains('/') {
        is_file(Path::new(program))
    } else {
        env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|folder| is_file(&folder.join(program))))
    };
    if found {
        return Ok(());
    }
    let get = match program {
        "npx" => "install Node.js, which brings it along",
        "uvx" => "install uv, which brings it along",
        _ => "install it",
    };
    Err(format!("there is no program {program}: {get}, or change the annotation {COMMAND}"))
}

/// The port that the manifest asks for must be free. If it asks for none, any will do.
pub(super) async fn listener(wanted: Option<u16>, before: Option<u16>) -> Result<TcpListener, String> {
    let bind = |port| TcpListener::bind(("127.0.0.1", port));
    if let Some(port) = wanted {
        let taken = |error: io::Error| {
            format!(
                "spec.proxyPort: cannot listen on 127.0.0.1:{port}: {error}: choose another, or leave it out"
            )
        };
        return bind(port).await.map_err(taken);
    }
    for port in [before.unwrap_or(USUAL_PORT), 0] {
        if let Ok(listener) = bind(port).await {
            return Ok(listener);
        }
    }
    Err("there is no free port on 127.0.0.1".into())
}

pub(super) async fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?.port())
}
