//! `skep render`: what the operator would create.

use std::{collections::BTreeMap, env, path::PathBuf};

use anyhow::ensure;
use serde_json::Value;
use skep_operator::{
    render::{Rendered, render},
    settings::Settings,
};

use crate::{
    manifests::{ManifestFiles, Manifests, in_spec},
    output::print,
};

/// Print the objects that the operator would create for files of manifests, without a cluster.
///
/// References to other objects are resolved within these files. If objects have problems, all of them are printed, each with its
/// line, and nothing else.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep render -f server.yaml\n  kubectl get mcpservers -o yaml | skep render -f -"
)]
pub(crate) struct Args {
    /// A file with one or more YAML documents, a folder of such files, or - for standard input. Can be repeated.
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The namespace of objects without one.
    #[arg(short, long, default_value = "default")]
    namespace: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut files = ManifestFiles::new(&args.files);
    let manifests = Manifests::of(&files.read()?, &args.namespace)?;
    let settings = Settings::from_env(&env::vars().collect::<BTreeMap<_, _>>());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let rendered = runtime
        .block_on(render(manifests.objects.clone(), settings))
        .map_err(|error| anyhow::anyhow!("{}{error}", manifests.place_of(&error)))?;
    let place = files.place();
    ensure!(!rendered.is_empty(), "{place}nothing to render: it contains no object of toolhive.stacklok.dev");
    print(&yaml(&rendered, &manifests)?)
}

fn yaml(rendered: &[Rendered], manifests: &Manifests) -> anyhow::Result<String> {
    let (mut text, mut mistakes) = (String::new(), Vec::new());
    for Rendered { owner, children, target, .. } in rendered {
        match children {
            Ok(children) => {
                for child in children {
                    text.push_str("---\n");
                    text.push_str(&serde_saphyr::to_string(&without_uid(child.body().clone()))?);
                }
            }
            Err(problems) => mistakes.extend(problems.iter().map(|problem| {
                let field = in_spec(&problem.field);
                let place = manifests.place(target.kind.kind, &target.namespace, &target.name, &field);
                format!("{place}{owner}: {problem}")
            })),
        }
    }
    ensure!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    Ok(text)
}

/// Only a cluster assigns uids, so owner references have none. Keys are sorted, so that two outputs can be compared.
fn without_uid(mut body: Value) -> Value {
    for owner in body["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        if let Value::Object(owner) = owner {
            owner.remove("uid");
        }
    }
    body.sort_all_objects();
    body
}
