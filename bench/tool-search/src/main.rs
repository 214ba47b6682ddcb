//! How often the tool search finds the right tools, how fast it is, and what it saves.

mod data;
mod quality;
mod size;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;
use skep_tool_search::StaticModel;

use data::Set;
use quality::Searcher;

/// Measure the tool search.
#[derive(Parser)]
struct Args {
    /// A folder with files of tools and queries, each {"tools": [...], "queries": [{"text": ..., "relevant": [...]}]}.
    #[arg(long)]
    data: PathBuf,
    /// A folder with a static model.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Measure time and memory for so many tools: used by the program itself.
    #[arg(long, hide = true)]
    count: Option<usize>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let sets = Set::read_all(&args.data)?;
    if sets.is_empty() {
        bail!("{} has no file of tools and queries", args.data.display());
    }
    let model = args.model.as_deref().map(StaticModel::open).transpose().context("the model")?;
    if let Some(count) = args.count {
        return size::print_row(&sets, count, model.as_ref());
    }
    let tokenizer = tiktoken_rs::o200k_base().context("the tokenizer")?;
    println!(
        "| set | tools, queries | search | recall@1 | @5 | @8 | nDCG@5 | µs per query | bytes / 4 saved | tokens saved |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for set in &sets {
        let tools = set.search_tools();
        let models = [None, model.as_ref()];
        for model in models.into_iter().take(1 + usize::from(model.is_some())) {
            let quality = Searcher::new(&tools, model).quality(set, &tokenizer);
            let (name, tools, queries) = (&set.name, set.tools.len(), set.queries.len());
            println!("| {name} | {tools}, {queries} | {} | {quality} |", label(model.is_some()));
        }
    }
    println!();
    size::print(args)
}

/// What a search uses.
fn label(has_model: bool) -> &'static str {
    if has_model { "words and static model" } else { "words" }
}
