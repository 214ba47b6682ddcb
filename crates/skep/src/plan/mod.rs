//! `skep plan`: what the operator would change in a cluster.

mod json;
mod selector;
mod text;

use std::{env, process::ExitCode};

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use kube::{Config, config::KubeConfigOptions};
use skep_converge::Kind;
use skep_operator::{
    plan::{ClusterPlan, Planning, plan},
    reconcile::{ByKind, Plan, ReconcileError, Verdict},
    settings::Settings,
};
use skep_world::Target;

use crate::output::print;
use selector::ObjectSelector;

/// Print what the operator would change in the cluster, and why, for each object. Nothing is written.
///
/// Each write is sent to the API server as a dry run (dryRun=All), so that defaults and admission webhooks are included; you
/// need the operator's permissions. Settings come from the operator's environment variables: set TOOLHIVE_RUNNER_IMAGE
/// and VMCP_IMAGE as in your installation.
///
/// The exit code is 0 if there is nothing to do, 2 if there are changes, and 1 on an error.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep plan\n  skep plan -n team-a MCPServer/fetch\n  skep plan -A --output json"
)]
pub(crate) struct Args {
    /// The namespace. Default: that of the context.
    #[arg(short, long)]
    namespace: Option<String>,

    /// All namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// The context of the kubeconfig. Default: the current one.
    #[arg(long)]
    context: Option<String>,

    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    /// The objects, as NAME or KIND/NAME. Default: all.
    #[arg(value_name = "OBJECT")]
    objects: Vec<ObjectSelector>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// Plain text.
    Text,
    /// JSON.
    Json,
}

/// The exit code for changes.
const CHANGES: u8 = 2;

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (plans, lacking) = runtime.block_on(plans(args))?;
    print(&match args.output {
        Output::Text => text::text(&plans, &lacking),
        Output::Json => json::json(&plans, &lacking)?,
    })?;
    let is_settled = |plan: &Plan| matches!(plan.verdict(), Verdict::Settled | Verdict::Waiting);
    let settled = plans.iter().all(|(_, plan)| is_settled(plan));
    Ok(if settled { ExitCode::SUCCESS } else { ExitCode::from(CHANGES) })
}

/// An object and its plan.
type Planned = (Target, Plan);

/// What the CRDs of the cluster lack: status fields, and whole kinds.
struct Lacking {
    fields: ByKind,
    kinds: Vec<Kind>,
}

/// The plans, and what the CRDs lack.
async fn plans(args: &Args) -> anyhow::Result<(Vec<Planned>, Lacking)> {
    // These errors include their causes.
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
    let is_selected = |target: &Target| {
        args.objects.is_empty() || args.objects.iter().any(|selector| selector.matches(target))
    };
    // The error includes its causes.
    let ClusterPlan { objects: planned, undeclared: fields, unserved: kinds } =
        plan(config, &namespaces, settings, is_selected).await.map_err(|error| anyhow!("{error}"))?;
    for selector in &args.objects {
        if !planned.iter().any(|(target, _)| selector.matches(target)) {
            let place = if args.all_namespaces {
                "the cluster".into()
            } else {
                format!("namespace {}", namespaces[0])
            };
            bail!("{selector}: not found in {place}");
        }
    }
    let plans = planned.into_iter().map(finished).collect::<anyhow::Result<_>>()?;
    Ok((plans, Lacking { fields, kinds }))
}

const RIGHTS: &str = "a plan writes nothing, but the API server accepts a dry run only from users who may make the \
                      write: run it with the operator's permissions";

/// A partial plan is an error.
fn finished((target, result): Planning) -> anyhow::Result<Planned> {
    let object = || format!("{} {}/{}", target.kind.kind, target.namespace, target.name);
    match result {
        Ok(plan) => Ok((target.as_ref().clone(), plan)),
        Err(ReconcileError::Write(error) | ReconcileError::Status(error)) if error.is_forbidden() => {
            bail!("{}: {error}; {RIGHTS}", object())
        }
        Err(ReconcileError::Write(error)) if error.is_stale() => {
            bail!("{} changed while it was planned: run the command again ({error})", object())
        }
        Err(failure) => bail!("{}: {failure}", object()),
    }
}
