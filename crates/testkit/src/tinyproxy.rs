//! A real egress proxy for one test.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Result, bail};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{free_port, process::Process, repository::install, scratch::Scratch};

const START_TIME: Duration = Duration::from_secs(30);

/// A tinyproxy on loopback. It ends with the test, however that ends.
pub struct Tinyproxy {
    address: SocketAddr,
    scratch: Scratch,
    _process: Process,
}

impl Tinyproxy {
    /// Starts one that requires this name and password.
    pub async fn start(name: &str, password: &str) -> Self {
        Self::launch(name, password).await.expect("tinyproxy starts")
    }

    async fn launch(name: &str, password: &str) -> Result<Self> {
        let scratch = Scratch::new()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let (file, log) = (scratch.path().join("tinyproxy.conf"), scratch.path().join("log"));
        let settings = format!(
            "Port {}\nListen 127.0.0.1\nTimeout 60\nMaxClients 64\nLogFile {:?}\nLogLevel Connect\nBasicAuth {name} {password}\n",
            address.port(),
            log.display().to_string(),
        );
        fs::write(&file, settings)?;
        let file = file.display().to_string();
        let process = Process::start(&program()?, ["-d", "-c", &file], scratch.path())?;
        let deadline = Instant::now() + START_TIME;
        while TcpStream::connect(address).await.is_err() {
            process.check()?;
            if Instant::now() > deadline {
                bail!("tinyproxy does not listen within {START_TIME:?}");
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(Self { address, scratch, _process: process })
    }

    /// Its address, as `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// What it has logged: a line for each request.
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }
}

/// An address of this machine that is not loopback, as what is on loopback is never reached through a proxy.
pub fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // Nothing is sent: this selects the interface.
    socket.connect("192.0.2.1:9").expect("a route");
    socket.local_addr().expect("an address").ip()
}

fn program() -> Result<PathBuf> {
    Ok(install("packages", &["--tinyproxy"])?.join("tinyproxy"))
}
