//! `skep explain`: whether a caller may do something, and what each middleware decides.

mod offers;
mod subject;
mod text;
mod why_pods;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use skep_proxy::Caller;

use crate::{cluster::Cluster, output::print};
pub(crate) use offers::Tools;
use subject::Target;
pub(crate) use subject::{Subject, subjects};

/// The exit code if the request is rejected, and if only a running server decides. An error has 1, as everywhere.
const REJECTED: u8 = 3;
const UNDECIDED: u8 = 4;

/// Explain what would become of a request: each middleware in its order, what it decides, and by what.
///
/// It reads files of manifests, and needs no cluster. Policies, tool filters and authentication are decided by the same
/// code as in the proxy; what would send requests to others is described. The exit code is 3 if the request is rejected, and 4 if only a
/// running server decides.
///
/// With --why-pods, it explains what changed that replaced the pods of a server in a cluster.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep explain --why-pods fetch -n team-a\n  skep explain -f server.yaml --claims '{\"sub\": \"alice\"}' --tool delete_file\n  skep explain -f . --server files --anonymous --tool read_file --arguments '{\"path\": \"/tmp\"}' -o json"
)]
pub(crate) struct Args {
    /// A file with one or more YAML documents, a folder of such files, or - for standard input. Can be repeated.
    #[arg(short, long = "file", value_name = "FILE", required_unless_present = "why_pods")]
    files: Vec<PathBuf>,

    /// The namespace of objects without one, or of the server of --why-pods. Default: default, or that of the kubeconfig.
    #[arg(short, long)]
    namespace: Option<String>,

    /// Explain instead why the pods of this server were replaced or restarted. This reads from the cluster of the kubeconfig.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "server", "RequestArgs", "caller"])]
    why_pods: Option<String>,

    /// The name of the MCPServer, MCPRemoteProxy or VirtualMCPServer. Not needed if there is one only.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    #[command(flatten)]
    question: QuestionArgs,
}

/// Explain what would become of a request to a server of the cluster: each middleware in its order, what it decides, and by
/// what.
///
/// It reads the configuration that the proxy or the virtual server runs with. The exit code is 3 if the request is rejected,
/// and 4 if only a running server decides. With --why-pods, it explains what changed that replaced the pods of the server.
#[derive(clap::Args)]
pub(crate) struct LiveArgs {
    /// The name of the MCPServer, MCPRemoteProxy or VirtualMCPServer.
    name: String,

    /// Explain instead why the pods of this server were replaced or restarted.
    #[arg(long, conflicts_with_all = ["RequestArgs", "caller"])]
    why_pods: bool,

    #[command(flatten)]
    question: QuestionArgs,
}

/// Who wants what.
#[derive(clap::Args)]
struct QuestionArgs {
    /// The claims of the caller's token, as JSON.
    #[arg(long, value_name = "JSON", group = "caller")]
    claims: Option<String>,

    /// The caller's token. Its issuer's keys are fetched.
    #[arg(long, value_name = "TOKEN", env = "SKEP_TOKEN", hide_env_values = true, group = "caller")]
    token: Option<String>,

    /// A ServiceAccount, with the claims of its tokens.
    #[arg(long, value_name = "NAMESPACE/NAME", group = "caller")]
    service_account: Option<String>,

    /// A caller without a token. This is the default.
    #[arg(long, group = "caller")]
    anonymous: bool,

    #[command(flatten)]
    request: RequestArgs,

    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// What the caller wants.
#[derive(clap::Args)]
#[group(multiple = true, conflicts_with = "why_pods")]
struct RequestArgs {
    /// A tool to call.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["prompt", "resource"],
        required_unless_present_any = ["prompt", "resource", "why_pods"]
    )]
    tool: Option<String>,

    /// A prompt to get.
    #[arg(long, value_name = "NAME", conflicts_with = "resource")]
    prompt: Option<String>,

    /// A resource to read.
    #[arg(long, value_name = "URI")]
    resource: Option<String>,

    /// The arguments of the tool or prompt, as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "resource")]
    arguments: Option<String>,
}

/// What is printed.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Some(name) = &args.why_pods {
        return runtime()?.block_on(async {
            let cluster = Cluster::of_kubeconfig(args.namespace.as_deref()).await?;
            why_pods::run(&cluster, name, args.question.output).await
        });
    }
    let subjects = subjects(&args.files, args.namespace.as_deref().unwrap_or("default"))?;
    let subject = Subject::select(&subjects, args.server.as_deref())?;
    runtime()?.block_on(explain(subject, &args.question))
}

/// `kubectl skep explain`.
pub(crate) async fn run_live(cluster: &Cluster, args: &LiveArgs) -> anyhow::Result<ExitCode> {
    if args.why_pods {
        return why_pods::run(cluster, &args.name, args.question.output).await;
    }
    explain(&Subject::live(cluster, &args.name).await?, &args.question).await
}

async fn explain(subject: &Subject, question: &QuestionArgs) -> anyhow::Result<ExitCode> {
    let caller = caller(question)?;
    let (method, params) = request(&question.request)?;
    let explained = subject.explain(&caller, method, &params).await?;
    let is_rejected = explained.destination.is_none();
    let is_undecided = !is_rejected && explained.is_undecided();
    print(&match question.output {
        Format::Text => text::explanation(subject, &explained),
        Format::Json => {
            let sent_to = explained.destination.as_ref().map(|target| match target {
                Target::Server(server) => json!(server),
                Target::Routed(destination) => json!(destination),
            });
            let printed = json!({
                "server": subject.name(), "allowed": (!is_undecided).then_some(!is_rejected),
                "middlewares": explained.steps,
                "sentTo": sent_to,
            });
            format!("{printed:#}\n")
        }
    })?;
    Ok(match is_rejected {
        true => ExitCode::from(REJECTED),
        false if is_undecided => ExitCode::from(UNDECIDED),
        false => ExitCode::SUCCESS,
    })
}

fn caller(args: &QuestionArgs) -> anyhow::Result<Caller> {
    Ok(match (&args.claims, &args.token, &args.service_account) {
        (Some(claims), ..) => {
            let claims: Map<String, Value> =
                serde_json::from_str(claims).context("--claims is no object of JSON")?;
            Caller::Claims(claims)
        }
        (None, Some(token), _) => Caller::Token(token.clone()),
        (None, None, Some(account)) => Caller::Claims(service_account(account)?),
        (None, None, None) => Caller::Anonymous,
    })
}

/// The claims in the tokens of a ServiceAccount, without those that differ from token to token.
fn service_account(account: &str) -> anyhow::Result<Map<String, Value>> {
    let (namespace, name) = account.split_once('/').context("--service-account must be NAMESPACE/NAME")?;
    let claims = json!({
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name}},
    });
    Ok(claims.as_object().cloned().unwrap_or_default())
}

/// The method and parameters of a request.
fn request(args: &RequestArgs) -> anyhow::Result<(&'static str, Value)> {
    let arguments: Map<String, Value> = match &args.arguments {
        Some(arguments) => serde_json::from_str(arguments).context("--arguments is no object of JSON")?,
        None => Map::new(),
    };
    Ok(match (&args.tool, &args.prompt, &args.resource) {
        (Some(tool), _, _) => ("tools/call", json!({"name": tool, "arguments": arguments})),
        (None, Some(prompt), _) => ("prompts/get", json!({"name": prompt, "arguments": arguments})),
        (None, None, Some(uri)) => ("resources/read", json!({"uri": uri})),
        (None, None, None) => anyhow::bail!("name what the caller wants: --tool, --prompt or --resource"),
    })
}
