//! Runs a command, such as `cargo nextest run`, with one control plane for all tests in it.

use std::{env, process::ExitCode};

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some((program, args)) = args.split_first() else {
        eprintln!(
            "usage: skep-testkit COMMAND [ARGUMENT...]\n\nRuns COMMAND with a control plane that its tests share."
        );
        return ExitCode::from(2);
    };
    match skep_testkit::share(program, args).await {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
