//! A real Redis for one test.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{free_port, process::Process, repository::install, scratch::Scratch};

const START_TIME: Duration = Duration::from_secs(30);
const AUTHORITY: &str = "ca.pem";
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";

/// A Redis on loopback, which persists to disk. It ends with the test, however that ends.
pub struct Redis {
    address: SocketAddr,
    password: Option<String>,
    /// The authority of its certificate, in PEM. With it, all connections use TLS.
    authority: Option<String>,
    process: Option<Process>,
    scratch: Scratch,
}

impl Redis {
    /// Starts one without a password.
    pub async fn start() -> Self {
        Self::launch(None, false).await.expect("Redis starts")
    }

    /// Starts one with a password.
    pub async fn with_password(password: &str) -> Self {
        Self::launch(Some(password.to_owned()), false).await.expect("Redis starts")
    }

    /// Starts one with a password and TLS.
    pub async fn with_tls(password: &str) -> Self {
        Self::launch(Some(password.to_owned()), true).await.expect("Redis starts")
    }

    async fn launch(password: Option<String>, has_tls: bool) -> Result<Self> {
        let (address, scratch) = (SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())), Scratch::new()?);
        let authority = has_tls.then(|| write_certificates(scratch.path())).transpose()?;
        let mut redis = Self { address, password, authority, process: None, scratch };
        redis.try_start().await?;
        Ok(redis)
    }

    pub(crate) fn host_and_port(&self) -> (IpAddr, u16) {
        (self.address.ip(), self.address.port())
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The authority of its certificate, in PEM.
    pub fn authority(&self) -> &str {
        self.authority.as_deref().expect("it has TLS")
    }

    /// The file with this authority.
    pub fn authority_file(&self) -> PathBuf {
        self.scratch.path().join(AUTHORITY)
    }

    /// Its address, as `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again, with the same address and data.
    pub async fn start_again(&mut self) {
        self.try_start().await.expect("Redis starts once more");
    }

    /// Stops it from reading and responding, as if disconnected, until [`resume`](Self::resume).
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes it.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// All that it has ever written to its disk: each command that changed something, with its values.
    pub fn written(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        read_all(self.scratch.path(), &mut bytes);
        bytes
    }

    /// How often each command was executed, also by scripts, but for those that touch no key.
    pub async fn commands(&self) -> BTreeMap<String, u64> {
        let mut stream = TcpStream::connect(self.address).await.expect("Redis listens");
        let login = self.password.as_ref().map(|password| format!("AUTH {password}\r\n")).unwrap_or_default();
        let sent = format!("{login}INFO commandstats\r\nQUIT\r\n");
        stream.write_all(sent.as_bytes()).await.expect("Redis reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("Redis responds");
        let lines = text.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
        let counts = lines.map(|(name, rest)| {
            let calls = rest.split(',').next().and_then(|calls| calls.parse().ok());
            (name.to_owned(), calls.expect("a number of calls"))
        });
        counts.filter(|(name, _)| !["auth", "info", "ping", "quit"].contains(&&**name)).collect()
    }

    fn signal(&self, signal: Signal) {
        let pid = self.process.as_ref().and_then(|process| i32::try_from(process.pid()).ok());
        kill_process(pid.and_then(Pid::from_raw).expect("Redis runs"), signal).expect("it can be signalled");
    }

    async fn try_start(&mut self) -> Result<()> {
        let port = self.address.port().to_string();
        let folder = self.scratch.path().to_owned();
        let mut args = vec!["--bind", "127.0.0.1", "--save", ""];
        match self.authority {
            None => args.extend(["--port", &port]),
            Some(_) => {
                args.extend(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
                args.extend(["--tls-cert-file", CERTIFICATE, "--tls-key-file", KEY]);
                args.extend(["--tls-ca-cert-file", AUTHORITY]);
            }
        }
        args.extend(["--appendonly", "yes", "--appendfsync", "always", "--dir"]);
        let folder_name = folder.to_string_lossy().into_owned();
        args.push(&folder_name);
        if let Some(password) = &self.password {
            args.extend(["--requirepass", password]);
        }
        let process = Process::start(&redis_program()?, args, &folder)?;
        let deadline = Instant::now() + START_TIME;
        while !self.responds().await.unwrap_or(false) {
            process.check()?;
            if Instant::now() > deadline {
                bail!("Redis does not respond within {START_TIME:?}");
            }
            sleep(Duration::from_millis(10)).await;
        }
        self.process = Some(process);
        Ok(())
    }

    /// Whether it responds, even with a request for a password. While it loads its files, it does not.
    async fn responds(&self) -> Result<bool> {
        let mut stream = TcpStream::connect(self.address).await?;
        if self.authority.is_some() {
            return Ok(true);
        }
        stream.write_all(b"PING\r\n").await?;
        let mut answer = [0; 64];
        let length = stream.read(&mut answer).await?;
        Ok([&b"+PONG"[..], b"-NOAUTH"].iter().any(|expected| answer[..length].starts_with(expected)))
    }
}

/// Writes an authority and a certificate of it for loopback. Returns the authority in PEM.
fn write_certificates(folder: &Path) -> Result<String> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &authority)?;
    fs::write(folder.join(AUTHORITY), authority.pem())?;
    fs::write(folder.join(CERTIFICATE), server.pem())?;
    fs::write(folder.join(KEY), key.serialize_pem())?;
    Ok(authority.pem())
}

fn read_all(folder: &Path, bytes: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).expect("the folder of Redis can be read") {
        let path = entry.expect("it can be read to its end").path();
        match path.is_dir() {
            true => read_all(&path, bytes),
            // A file that Redis replaces just now is written under another name, too.
            false => bytes.extend(fs::read(&path).unwrap_or_default()),
        }
    }
}

/// The program of Redis, which is a Sentinel and a node of a cluster as well.
pub fn redis_program() -> Result<PathBuf> {
    install("redis", &[])
}
