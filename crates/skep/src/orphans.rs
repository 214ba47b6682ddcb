//! `skep kill-orphans`, which `skep run` starts beside its servers.

use std::io;

/// The name of the command.
pub(crate) const COMMAND: &str = "kill-orphans";

/// Kill the process groups that standard input lists, once it ends.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run() {
    skep_proxy::runtime::kill_orphans(io::stdin().lock());
}
