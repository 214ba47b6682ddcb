//! The skep binary.

mod completions;
mod crds;
mod demo_server;
mod logs;
mod manifests;
mod operator;
mod output;
mod plan;
mod proxy;
mod rbac;
mod render;
mod run;

use std::{env, ffi::OsString, path::Path, process::ExitCode};

use anyhow::anyhow;
use clap::{CommandFactory, Parser, Subcommand};

/// What ToolHive's image of the proxy is started as.
const PROXY_RUNNER: &str = "thv-proxyrunner";
/// The first word in a container of a VirtualMCPServer, which names no command.
const VIRTUAL_SERVER: &str = "serve";

/// Runs MCP servers on Kubernetes.
#[derive(Parser)]
#[command(
    name = "skep",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  skep run -f examples/quickstart.yaml       servers on this machine, with no cluster\n  skep run npx://PACKAGE                     one from npm, with no file\n  skep render -f server.yaml                 what the operator would create\n  skep crds | kubectl apply --server-side -f -"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Completions(completions::Args),
    Crds(crds::Args),
    DemoServer(demo_server::Args),
    Operator(operator::Args),
    Plan(plan::Args),
    Proxy(proxy::Args),
    Rbac(rbac::Args),
    Render(render::Args),
    Run(run::Args),
}

/// The command line. Called by the name of the proxy that a Deployment starts, it is that program. So it is with that
/// program's first word in a container of the operator's, which names no command: there the image's own is called.
fn words(mut words: Vec<OsString>, in_container: bool) -> Vec<OsString> {
    let called = words.first().and_then(|path| Path::new(path).file_name());
    let runs = in_container && words.get(1).is_some_and(|word| word == "run");
    if runs || called.is_some_and(|name| name == PROXY_RUNNER) {
        words.splice(..1, ["skep".into(), "proxy".into()]);
    }
    words
}

fn main() -> ExitCode {
    // Every proxy of the operator's has this variable.
    let in_container = env::var_os(skep_config::env::RUNTIME).is_some();
    let words = words(env::args_os().collect(), in_container);
    if words.get(1).is_some_and(|word| word == VIRTUAL_SERVER) {
        return exit_code(Err(anyhow!(
            "there is no virtual MCP server in skep yet: set operator.vmcpImage of the chart, which is VMCP_IMAGE of \
             the operator, to ToolHive's image, such as ghcr.io/stacklok/toolhive/vmcp:v0.44.0"
        )));
    }
    let result = match Cli::parse_from(words).command {
        Command::Completions(args) => {
            completions::run(&args, Cli::command());
            Ok(())
        }
        Command::Crds(args) => crds::run(&args),
        Command::DemoServer(_) => demo_server::run(),
        Command::Operator(args) => operator::run(args),
        Command::Plan(args) => return exit_code(plan::run(&args)),
        Command::Proxy(args) => proxy::run(args),
        Command::Rbac(args) => rbac::run(&args),
        Command::Render(args) => render::run(&args),
        Command::Run(args) => run::run(&args),
    };
    exit_code(result.map(|()| ExitCode::SUCCESS))
}

fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
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
    fn the_proxy_is_known_by_its_name_and_in_a_container_by_its_first_word() {
        let read = |line: &str, in_container| {
            words(line.split(' ').map(Into::into).collect(), in_container).join(OsStr::new(" "))
        };
        assert_eq!(read("/usr/bin/thv-proxyrunner run image", false), "skep proxy run image");
        assert_eq!(read("/skep run image", true), "skep proxy run image");
        assert_eq!(read("/skep run image", false), "/skep run image");
        assert_eq!(read("/skep operator run", true), "/skep operator run");
        assert_eq!(read("/skep", true), "/skep");
    }
}
