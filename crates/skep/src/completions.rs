//! `skep completions`: completion scripts for shells.

use std::io;

use clap_complete::Shell;

/// Print a completion script for your shell.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep completions bash > ~/.local/share/bash-completion/completions/skep\n  skep completions zsh > ~/.zfunc/_skep\n  skep completions fish > ~/.config/fish/completions/skep.fish"
)]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) {
    clap_complete::generate(args.shell, &mut command, "skep", &mut io::stdout());
}
