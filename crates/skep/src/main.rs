//! The skep binary.

mod agent;
mod authorization_server;
mod client;
mod cluster;
mod completions;
mod console;
mod crds;
mod demo_server;
mod explain;
mod kubectl;
mod last_words;
mod logs;
mod manifests;
mod mcp_client;
mod operator;
mod orphans;
mod output;
mod plan;
mod policy_tests;
mod proxy;
mod rbac;
mod render;
mod run;
mod signals;
mod start_up;
mod vmcp;

use std::{env, ffi::OsString, path::Path, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: skep_memory::Allocator = skep_memory::Allocator;

/// The names of the programs in ToolHive's images.
const PROXY_RUNNER: &str = "thv-proxyrunner";
const VIRTUAL_SERVER: &str = "vmcp";

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
    Client(client::Args),
    Completions(completions::Args),
    Console(console::Args),
    Crds(crds::Args),
    DemoServer(demo_server::Args),
    Explain(explain::Args),
    Kubectl(kubectl::Args),
    #[command(name = orphans::COMMAND, hide = true)]
    KillOrphans(orphans::Args),
    Logs(run::LogsArgs),
    Ls(run::LsArgs),
    Operator(operator::Args),
    Plan(plan::Args),
    Proxy(proxy::Args),
    Rbac(rbac::Args),
    Render(render::Args),
    Rm(run::RmArgs),
    Run(run::Args),
    Stop(run::StopArgs),
    Test(policy_tests::Args),
    Vmcp(vmcp::Args),
}

/// The command line. A program with the name of one of ToolHive's is that command. So is one in a container of the operator
/// with its first argument: the container sets no command, and the image's entrypoint is skep.
fn normalize_args(mut words: Vec<OsString>, in_container: bool) -> Vec<OsString> {
    let called = words.first().and_then(|path| Path::new(path).file_name());
    let is_called = |name: &str| called.is_some_and(|called| called == name);
    let starts_with = |word: &str| words.get(1).is_some_and(|first| first == word);
    let command = match () {
        () if is_called(PROXY_RUNNER) || (in_container && starts_with("run")) => "proxy",
        () if is_called(VIRTUAL_SERVER) || starts_with("serve") => "vmcp",
        () if is_called(kubectl::PLUGIN) => "kubectl",
        () => return words,
    };
    words.splice(..1, ["skep".into(), command.into()]);
    words
}

fn main() -> ExitCode {
    // The operator sets this variable for every proxy.
    let in_container = env::var_os(skep_config::env::RUNTIME).is_some();
    let words = normalize_args(env::args_os().collect(), in_container);
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => {
            error.print().ok();
            // As ToolHive's program does.
            let is_vmcp = words.get(1).is_some_and(|word| word == VIRTUAL_SERVER);
            return if error.use_stderr() && !is_vmcp {
                ExitCode::from(2)
            } else {
                ExitCode::from(u8::from(error.use_stderr()))
            };
        }
    };
    let result = match cli.command {
        Command::Client(args) => client::run(&args),
        Command::Completions(args) => {
            completions::run(&args, Cli::command());
            Ok(())
        }
        Command::Console(args) => console::run(args),
        Command::Crds(args) => crds::run(&args),
        Command::Explain(args) => return exit_code(explain::run(&args)),
        Command::Kubectl(args) => return exit_code(kubectl::run(&args)),
        Command::DemoServer(_) => demo_server::run(),
        Command::KillOrphans(_) => {
            orphans::run();
            Ok(())
        }
        Command::Logs(args) => run::print_logs(&args),
        Command::Ls(args) => run::ls(&args),
        Command::Operator(args) => operator::run(args),
        Command::Plan(args) => return exit_code(plan::run(&args)),
        Command::Proxy(args) => proxy::run(args).inspect_err(last_words::leave),
        Command::Rbac(args) => rbac::run(&args),
        Command::Render(args) => render::run(&args),
        Command::Rm(args) => run::rm(&args),
        Command::Run(args) => run::run(&args),
        Command::Stop(args) => run::stop(&args),
        Command::Test(args) => policy_tests::run(&args),
        Command::Vmcp(args) => vmcp::run(&args).inspect_err(last_words::leave),
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
    fn a_program_is_recognised_by_its_name_and_in_a_container_by_its_first_argument() {
        let read = |line: &str, in_container| {
            normalize_args(line.split(' ').map(Into::into).collect(), in_container).join(OsStr::new(" "))
        };
        assert_eq!(read("/usr/bin/thv-proxyrunner run image", false), "skep proxy run image");
        assert_eq!(read("/skep run image", true), "skep proxy run image");
        assert_eq!(read("/skep run image", false), "/skep run image");
        assert_eq!(read("/skep operator run", true), "/skep operator run");
        assert_eq!(read("/skep", true), "/skep");
        assert_eq!(read("/vmcp validate -c f", false), "skep vmcp validate -c f");
        assert_eq!(read("/skep serve --config=f", false), "skep vmcp serve --config=f");
    }
}
