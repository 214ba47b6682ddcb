//! `skep rbac`: what the operator must be allowed.

use clap::ValueEnum;
use skep_operator::permissions;

use crate::output::print;

/// Print what the operator must be allowed, as the rules of a Role.
///
/// They come from the program itself, whose tests run with these rules and nothing more. The charts' roles are made of
/// them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  skep rbac operator\n  skep rbac leader-election")]
pub(crate) struct Args {
    /// What for.
    #[arg(value_enum)]
    part: Part,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// To work, in each namespace that it works in, or in the whole cluster.
    Operator,
    /// To agree with other replicas on one that writes, in their own namespace.
    LeaderElection,
    /// To move stored objects to another version of the API, in the whole cluster.
    Migration,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let rules = match args.part {
        Part::Operator => permissions::rules(),
        Part::LeaderElection => permissions::election_rules(),
        Part::Migration => permissions::migration_rules(),
    };
    print(&serde_saphyr::to_string(&rules)?)
}
