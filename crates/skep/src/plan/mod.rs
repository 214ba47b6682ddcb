//! `skep plan`: what the operator would change in a cluster.

mod chosen;
mod json;
mod text;

use std::{env, process::ExitCode};

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use kube::{Config, config::KubeConfigOptions};
use skep_operator::{
    driver::Failure,
    plan::{Plan, Planning, Verdict, plan},
    settings::Settings,
};
use skep_world::Target;

use crate::output::print;
use chosen::Chosen;

/// Print what the operator would change in the cluster, and why, for each object. Nothing is written.
///
/// The API server is asked to try each write without making it (dryRun=All), so that its defaults and everybody's webhooks
/// are part of the answer; you must be allowed what the operator is. Settings come from the variables that the operator
/// has: set TOOLHIVE_RUNNER_IMAGE and VMCP_IMAGE as your installation does.
///
/// The exit code is 0 if there is nothing to do, 2 if there is something, and 1 if that cannot be said.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep plan\n  skep plan -n team-a MCPServer/fetch\n  skep plan -A --output json"
)]
pub(crate) struct Args {
    /// The namespace. Without it, the one of the context.
    #[arg(short, long)]
    namespace: Option<String>,

    /// All namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// The context of the kubeconfig. Without it, the current one.
    #[arg(long)]
    context: Option<String>,

    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    /// The objects, as NAME or KIND/NAME. Without any, all of them.
    #[arg(value_name = "OBJECT")]
    objects: Vec<Chosen>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// There is something to do.
const CHANGES: u8 = 2;

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let plans = runtime.block_on(plans(args))?;
    print(&match args.output {
        Output::Text => text::text(&plans),
        Output::Json => json::json(&plans)?,
    })?;
    let settled = plans.iter().all(|(_, plan)| plan.verdict() == Verdict::Settled);
    Ok(if settled { ExitCode::SUCCESS } else { ExitCode::from(CHANGES) })
}

/// An object, and what would be done for it.
type Planned = (Target, Plan);

async fn plans(args: &Args) -> anyhow::Result<Vec<Planned>> {
    // Errors of these say what their causes say.
    let config = match &args.context {
        Some(context) => {
            let options =
                KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
            let config = Config::from_kubeconfig(&options).await;
            config.map_err(|error| anyhow!("context {context}: {error}"))?
        }
        None => Config::infer().await.map_err(|error| anyhow!("no cluster: set KUBECONFIG: {error}"))?,
    };
    let namespaces = match (&args.namespace, args.all_namespaces) {
        (_, true) => Vec::new(),
        (Some(namespace), _) => vec![namespace.clone()],
        (None, _) => vec![config.default_namespace.clone()],
    };
    let settings = Settings::from_env(&env::vars().collect());
    let is_chosen =
        |target: &Target| args.objects.is_empty() || args.objects.iter().any(|chosen| chosen.is(target));
    // The sentence says what its causes say.
    let planned = plan(config, &namespaces, settings, is_chosen).await.map_err(|error| anyhow!("{error}"))?;
    for chosen in &args.objects {
        if !planned.iter().any(|(target, _)| chosen.is(target)) {
            let place = if args.all_namespaces {
                "the cluster".into()
            } else {
                format!("namespace {}", namespaces[0])
            };
            bail!("{chosen}: there is no such object in {place}");
        }
    }
    planned.into_iter().map(finished).collect()
}

const RIGHTS: &str = "a plan writes nothing, but the API server lets only those try a write who may make it: plan as somebody \
                      who is allowed what the operator is";

/// A plan that is not whole is none.
fn finished((target, result): Planning) -> anyhow::Result<Planned> {
    let object = || format!("{} {}/{}", target.kind.kind, target.namespace, target.name);
    match result {
        Ok(plan) => Ok((target.as_ref().clone(), plan)),
        Err(Failure::Write(error)) if error.is_forbidden() => bail!("{}: {error}; {RIGHTS}", object()),
        Err(Failure::Write(error)) if error.is_stale() => {
            bail!("{} changed while it was looked at: ask again ({error})", object())
        }
        Err(failure) => bail!("{}: {failure}", object()),
    }
}
