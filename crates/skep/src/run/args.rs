//! The command line of `skep run`.

use std::{env, path::PathBuf};

use super::{
    target::{Settings, Target, object_name, target_name},
    variables,
};

/// Run MCPServers and MCPRemoteProxies from files of manifests, packages and images on this machine, without a cluster.
///
/// Each server runs as a process, with the command line in its annotation skep.dev/local-command, or in a container of Docker
/// or Podman, behind a proxy on 127.0.0.1 that does the same as in a cluster. References to other objects are resolved within
/// the files. When a file changes, the servers that changed are restarted. Ctrl-C stops everything.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep run -f examples/quickstart.yaml\n  skep run npx://@modelcontextprotocol/server-everything\n  skep run --secret GITHUB_TOKEN npx://SERVER\n  skep run uvx://mcp-server-time -- --local-timezone=Europe/Zurich\n  skep run -d --port 9000 ghcr.io/stackloklabs/gofetch/server --transport streamable-http --target-port 8080"
)]
pub(crate) struct Args {
    /// A file with one or more YAML documents, a folder of such files, or - for standard input. Can be repeated.
    #[arg(short, long = "file", value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// Packages and images to run as servers: npx://PACKAGE, uvx://PACKAGE or REGISTRY/IMAGE:TAG.
    #[arg(value_name = "SERVER")]
    targets: Vec<String>,

    /// Arguments for the package or image.
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,

    /// A variable for the package or image. Without a value, it has the one of this environment. Can be repeated.
    #[arg(short, long, value_name = "NAME[=VALUE]", help_heading = SETTINGS)]
    env: Vec<String>,

    /// A file with such variables, one per line. Can be repeated.
    #[arg(long, value_name = "FILE", help_heading = SETTINGS)]
    env_file: Vec<PathBuf>,

    /// A variable with a secret: NAME, from the variable of this name in this environment, id=NAME,env=VARIABLE, from
    /// another one, or id=NAME,src=FILE, from a file. Can be repeated.
    #[arg(long, value_name = "NAME", help_heading = SETTINGS)]
    secret: Vec<String>,

    /// A folder for the image, with an absolute path there; :ro for read-only. Can be repeated.
    #[arg(long, value_name = "HERE:THERE[:ro]", help_heading = SETTINGS)]
    volume: Vec<String>,

    /// The port on 127.0.0.1 for clients. Default: one that follows from the name.
    #[arg(short, long, help_heading = SETTINGS, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// What the package or image speaks. Default: stdio.
    #[arg(long, help_heading = SETTINGS, value_parser = ["stdio", "streamable-http", "sse"])]
    transport: Option<String>,

    /// The port that it listens on, unless it speaks stdio.
    #[arg(long, value_name = "PORT", help_heading = SETTINGS, value_parser = clap::value_parser!(u16).range(1..))]
    target_port: Option<u16>,

    /// Its name. Default: that of the package or image.
    #[arg(long, help_heading = SETTINGS)]
    name: Option<String>,

    /// The port on 127.0.0.1 of the console. Default: one that follows from the name of the run.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "no_console")]
    pub(super) console_port: Option<u16>,

    /// Run without the console, the page in the browser that shows the servers and their calls.
    #[arg(long)]
    pub(super) no_console: bool,

    /// Run in the background. skep ls, logs, stop and rm are for what runs there.
    #[arg(short, long)]
    pub(super) detach: bool,

    /// The name of the run that this process is, in the background.
    #[arg(long, hide = true, value_name = "RUN")]
    pub(super) background: Option<String>,

    /// The namespace of objects without one.
    #[arg(short, long, default_value = "default")]
    pub(super) namespace: String,

    /// What is printed: a table, or a line of JSON whenever the state of a server changes. With JSON, everything else is
    /// printed to standard error.
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,

    /// Log more about the proxies. The standard error of servers is always logged.
    #[arg(short, long)]
    pub(super) verbose: bool,
}

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    #[default]
    Text,
    Json,
}

/// The heading of options for a server of the command line.
const SETTINGS: &str = "Options for one package or image";

impl Args {
    /// What is to run, for people. It contains no values of variables.
    pub(super) fn sources(&self) -> Vec<String> {
        let files = self.files.iter().map(|file| file.display().to_string());
        files.chain(self.targets.iter().cloned()).collect()
    }

    /// The name of the run: that of its first server on the command line, or of its first file.
    pub(super) fn run_name(&self) -> String {
        if let Some(target) = self.targets.first() {
            return self.name.clone().unwrap_or_else(|| target_name(target));
        }
        let stem =
            self.files.first().and_then(|file| file.canonicalize().ok()?.file_stem().map(ToOwned::to_owned));
        object_name(&stem.unwrap_or_else(|| "run".into()).to_string_lossy())
    }

    /// The servers of the command line.
    pub(super) fn targets(&self) -> anyhow::Result<Vec<Target>> {
        let own = |name: &str| env::var(name).ok();
        let settings = Settings {
            name: self.name.clone(),
            args: self.args.clone(),
            env: variables::variables(&self.env_file, &self.env, own)?,
            secrets: variables::secrets(&self.secret, own)?,
            volumes: self.volume.clone(),
            port: self.port,
            transport: self.transport.clone(),
            target_port: self.target_port,
        };
        Target::parse_all(&self.targets, &settings)
    }
}
