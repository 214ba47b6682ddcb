//! Redis behind a Sentinel and as a cluster: real ones.

use std::{fs, net::Ipv4Addr};

use anyhow::{Result, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Duration, Instant, sleep, timeout},
};

use crate::{Redis, free_port, process::Process, redis_program, scratch::Scratch};

const START_TIME: Duration = Duration::from_secs(30);
/// How long a reply may take before the command is sent again.
const REPLY_TIME: Duration = Duration::from_secs(1);

/// A Sentinel, which knows one Redis as its primary.
pub struct Sentinel {
    port: u16,
    _process: Process,
    _scratch: Scratch,
}

impl Sentinel {
    /// The name of the primary.
    pub const PRIMARY: &str = "main";

    /// Starts a Sentinel of this Redis.
    pub async fn of(redis: &Redis) -> Self {
        Self::launch(redis).await.expect("the Sentinel starts")
    }

    async fn launch(redis: &Redis) -> Result<Self> {
        let (port, scratch) = (free_port(), Scratch::new()?);
        let (host, of_primary) = redis.host_and_port();
        let name = Self::PRIMARY;
        let mut config =
            format!("port {port}\nbind 127.0.0.1\nsentinel monitor {name} {host} {of_primary} 1\n");
        if let Some(password) = redis.password() {
            config += &format!("sentinel auth-pass {name} {password}\n");
        }
        let file = scratch.path().join("sentinel.conf");
        fs::write(&file, config)?;
        let args = [&*file.to_string_lossy(), "--sentinel"];
        let process = Process::start(&redis_program()?, args, scratch.path())?;
        until_replied(port, None, "PING", "+PONG").await?;
        Ok(Self { port, _process: process, _scratch: scratch })
    }

    /// Its address, as `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// A cluster of two nodes, of which each has half of the slots.
pub struct RedisCluster {
    ports: [u16; 2],
    _nodes: Vec<(Process, Scratch)>,
}

impl RedisCluster {
    /// Starts a cluster without a password.
    pub async fn start() -> Self {
        Self::launch(None).await.expect("the cluster starts")
    }

    /// Starts a cluster with this password.
    pub async fn with_password(password: &str) -> Self {
        Self::launch(Some(password)).await.expect("the cluster starts")
    }

    async fn launch(login: Option<&str>) -> Result<Self> {
        let (ports, buses) = ([free_port(), free_port()], [free_port(), free_port()]);
        let mut nodes = Vec::new();
        for (port, bus) in ports.iter().zip(&buses) {
            let (scratch, port, bus) = (Scratch::new()?, port.to_string(), bus.to_string());
            let folder = scratch.path().to_string_lossy().into_owned();
            let mut args = vec!["--port", &*port, "--bind", "127.0.0.1", "--dir", &*folder, "--save", ""];
            args.extend(["--cluster-enabled", "yes", "--cluster-port", &*bus]);
            if let Some(password) = login {
                args.extend(["--requirepass", password]);
            }
            nodes.push((Process::start(&redis_program()?, args, scratch.path())?, scratch));
        }
        let done = if login.is_some() { "+OK\r\n+OK" } else { "+OK" };
        for (port, slots) in ports.iter().zip(["0 8191", "8192 16383"]) {
            until_replied(*port, login, "PING", "+PONG").await?;
            until_replied(*port, login, &format!("CLUSTER ADDSLOTSRANGE {slots}"), done).await?;
        }
        let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", ports[1], buses[1]);
        until_replied(ports[0], login, &meet, done).await?;
        for port in ports {
            until_replied(port, login, "CLUSTER INFO", "cluster_state:ok").await?;
        }
        Ok(Self { ports, _nodes: nodes })
    }

    /// The addresses of its nodes, as `host:port`.
    pub fn addresses(&self) -> [String; 2] {
        self.ports.map(|port| format!("127.0.0.1:{port}"))
    }
}

/// Sends a command again and again until the replies to the login and to it contain this text.
async fn until_replied(port: u16, password: Option<&str>, command: &str, expected: &str) -> Result<()> {
    let deadline = Instant::now() + START_TIME;
    let login = password.map(|password| format!("AUTH {password}\r\n")).unwrap_or_default();
    let commands = format!("{login}{command}\r\n");
    let mut replies = String::new();
    while Instant::now() < deadline {
        replies.clear();
        let is_expected = read_replies(port, &commands, expected, &mut replies);
        if timeout(REPLY_TIME, is_expected).await.is_ok_and(|read| read.is_ok()) {
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
    bail!("Redis does not reply to {command} with {expected:?}: {replies:?}")
}

/// Reads replies until they contain this text.
async fn read_replies(port: u16, commands: &str, expected: &str, replies: &mut String) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.write_all(commands.as_bytes()).await?;
    let mut part = [0; 4096];
    while !replies.contains(expected) {
        match stream.read(&mut part).await? {
            0 => bail!("the connection is closed"),
            length => replies.push_str(&String::from_utf8_lossy(&part[..length])),
        }
    }
    Ok(())
}
