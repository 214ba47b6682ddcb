//! What a benchmark prints.

use std::process::ExitCode;

use anyhow::Result;

/// Prints one line of a table.
pub fn print_row(cells: &[String]) {
    let (first, rest) = cells.split_first().map_or(("", cells), |(first, rest)| (first.as_str(), rest));
    let rest: String = rest.iter().map(|cell| format!("{cell:>14}")).collect();
    println!("{first:<28}{rest}");
}

/// Prints the error that ended a benchmark, if there is one.
pub fn ended(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
