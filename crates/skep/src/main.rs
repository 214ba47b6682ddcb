//! The skep binary.

mod crds;
mod logs;
mod operator;
mod output;
mod proxy;
mod render;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{Parser, Subcommand};

/// What ToolHive's image of the proxy is started as.
const PROXY_RUNNER: &str = "thv-proxyrunner";

/// Runs MCP servers on Kubernetes.
#[derive(Parser)]
#[command(name = "skep", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Crds(crds::Args),
    Operator(operator::Args),
    Proxy(proxy::Args),
    Render(render::Args),
}

/// The command line. Called by the name of the proxy that a Deployment starts, it is that program, and also with its
/// first word: the operator's Deployments name no command, and the image's own is that of the operator.
fn words(mut words: Vec<OsString>) -> Vec<OsString> {
    let called = words.first().and_then(|path| Path::new(path).file_name());
    if called.is_some_and(|name| name == PROXY_RUNNER) || words.get(1).is_some_and(|word| word == "run") {
        words.splice(..1, ["skep".into(), "proxy".into()]);
    }
    words
}

fn main() -> ExitCode {
    let result = match Cli::parse_from(words(std::env::args_os().collect())).command {
        Command::Crds(args) => crds::run(&args),
        Command::Operator(args) => operator::run(args),
        Command::Proxy(args) => proxy::run(args),
        Command::Render(args) => render::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One sentence for people; where in the program it came from helps nobody who reads it.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn the_proxy_is_known_by_its_name_and_by_its_first_word() {
        let read = |line: &str| words(line.split(' ').map(Into::into).collect()).join(OsStr::new(" "));
        assert_eq!(read("/usr/bin/thv-proxyrunner run image"), "skep proxy run image");
        assert_eq!(read("/skep run image"), "skep proxy run image");
        assert_eq!(read("/skep operator run"), "/skep operator run");
        assert_eq!(read("/skep"), "/skep");
    }
}
