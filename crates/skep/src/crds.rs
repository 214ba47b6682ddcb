//! `skep crds`: the definitions of all kinds.

use std::{fs, path::PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use serde_json::{Value, json};
use skep_api::crd;

use crate::output::print;

/// Print the CustomResourceDefinitions of all kinds.
///
/// They are generated from the types of this program, so they always match it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep crds | kubectl apply --server-side -f -\n  skep crds --dir charts/skep-crds/files"
)]
pub(crate) struct Args {
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,

    /// Write one YAML file for each kind into this folder, instead of printing.
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// YAML documents, for kubectl.
    Yaml,
    /// One JSON List.
    Json,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let crds = crd::crds()?.iter().map(crd::to_json).collect::<Result<Vec<_>, _>>()?;
    if let Some(dir) = &args.dir {
        fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.display()))?;
        for crd in &crds {
            let file = dir.join(file_name(crd));
            fs::write(&file, yaml(crd)?).with_context(|| format!("cannot write {}", file.display()))?;
        }
        return Ok(());
    }
    let text = match args.output {
        Format::Yaml => {
            crds.iter().map(|crd| Ok(format!("---\n{}", yaml(crd)?))).collect::<anyhow::Result<_>>()?
        }
        Format::Json => {
            let list = json!({"apiVersion": "v1", "items": crds, "kind": "List"});
            format!("{}\n", serde_json::to_string_pretty(&list)?)
        }
    };
    print(&text)
}

fn file_name(crd: &Value) -> String {
    format!("{}.yaml", crd["spec"]["names"]["plural"].as_str().unwrap_or_default())
}

fn yaml(crd: &Value) -> anyhow::Result<String> {
    Ok(serde_saphyr::to_string(crd)?)
}
