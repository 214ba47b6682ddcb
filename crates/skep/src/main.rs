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

/// The name of the program in ToolHive's proxy image.
const PROXY_RUNNER: &str = "thv-proxyrunner";
/// The first argument of a VirtualMCPServer's container, which sets no command.
const VIRTUAL_SERVER: &str = "serve";

/// Run MCP servers on Kubernetes, or on this machine.
#[derive(Parser)]
#[command(
    name = "skep",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  skep run -f examples/quickstart.yaml       servers on this machine, without a cluster\n  skep run npx://PACKAGE                     a server from npm, without a file\n  skep render -f server.yaml                 what the operator would create\n  skep crds | kubectl apply --server-side -f -"
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

/// The command line. A program with the name of ToolHive's proxy is `skep proxy`. So is one in a container of the operator
/// with the first argument of that proxy: the container sets no command, and the image's entrypoint is skep.
fn normalize_args(mut words: Vec<OsString>, in_container: bool) -> Vec<OsString> {
    let called = words.first().and_then(|path| Path::new(path).file_name());
    let runs = in_container && words.get(1).is_some_and(|word| word == "run");
    if runs || called.is_some_and(|name| name == PROXY_RUNNER) {
        words.splice(..1, ["skep".into(), "proxy".into()]);
    }
    words
}

fn main() -> ExitCode {
    // The operator sets this variable for every proxy.
    let in_container = env::var_os(skep_config::env::RUNTIME).is_some();
    let words = normalize_args(env::args_os().collect(), in_container);
    if words.get(1).is_some_and(|word| word == VIRTUAL_SERVER) {
        return exit_code(Err(anyhow!(
            "skep has no virtual MCP server yet: set operator.vmcpImage of the chart, which is VMCP_IMAGE of \
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
            // One line for the user; a backtrace would not help.
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
    fn the_proxy_is_recognised_by_its_name_and_in_a_container_by_its_first_argument() {
        let read = |line: &str, in_container| {
            normalize_args(line.split(' ').map(Into::into).collect(), in_container).join(OsStr::new(" "))
        };
        assert_eq!(read("/usr/bin/thv-proxyrunner run image", false), "skep proxy run image");
        assert_eq!(read("/skep run image", true), "skep proxy run image");
        assert_eq!(read("/skep run image", false), "/skep run image");
        assert_eq!(read("/skep operator run", true), "/skep operator run");
        assert_eq!(read("/skep", true), "/skep");
    }
}
