//! `skep rbac`: the permissions that the operator and the console need.

use clap::ValueEnum;
use skep_operator::permissions;

use crate::output::print;

/// Print the permissions that the operator and the console need, as the rules of a Role.
///
/// They come from the program itself, whose tests run with exactly these rules. The charts' roles are generated from them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  skep rbac operator\n  skep rbac leader-election")]
pub(crate) struct Args {
    /// The purpose.
    #[arg(value_enum)]
    part: Part,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// To reconcile, in each watched namespace or in the whole cluster.
    Operator,
    /// To elect a leader among replicas, in their own namespace.
    LeaderElection,
    /// To migrate stored objects to the storage version, in the whole cluster.
    Migration,
    /// To show objects and events in the console, in each watched namespace or in the whole cluster.
    Console,
    /// To administer sessions of users in the console, in addition.
    ConsoleSessions,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let rules = match args.part {
        Part::Operator => permissions::rules(),
        Part::LeaderElection => permissions::election_rules(),
        Part::Migration => permissions::migration_rules(),
        Part::Console => skep_console::rules(),
        Part::ConsoleSessions => skep_console::session_rules(),
    };
    print(&serde_saphyr::to_string(&rules)?)
}
