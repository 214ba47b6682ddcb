//! `kubectl skep sessions`: the sessions of users at the authorization server of a server.

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};
use skep_config::administration::SESSIONS;

use super::administration::{AccessArgs, Administered, Output};
use crate::{
    cluster::Cluster,
    output::{print, table},
};

/// List the sessions of users at the authorization server of a server, or end some.
///
/// A session is a login of a user by which a client may call the server. Ending one also forgets that the user has approved the client.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  kubectl skep sessions fetch --user ann@example.com\n  kubectl skep sessions end fetch --user ann@example.com"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    list: Option<List>,

    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Subcommand)]
enum Command {
    /// End sessions: those that have all of what is given. Their users approve the client again in its next login.
    End(List),
}

#[derive(clap::Args)]
struct List {
    /// The name of the server.
    name: String,

    /// A user: the subject in access tokens, the subject at an identity provider, or the e-mail address.
    #[arg(long)]
    user: Option<String>,

    /// The id of a client.
    #[arg(long)]
    client: Option<String>,

    /// The id of a session.
    #[arg(long)]
    session: Option<String>,
}

const HEAD: [&str; 7] = ["USER", "NAME", "ACCOUNTS", "CLIENT", "SINCE", "UNTIL", "SESSION"];

pub(super) async fn run(cluster: &Cluster, args: &Args) -> anyhow::Result<ExitCode> {
    match (&args.command, &args.list) {
        (Some(Command::End(which)), _) => {
            let query = which.query();
            if query.is_empty() {
                bail!("say which sessions: --user, --client or --session");
            }
            let server = Administered::connect(cluster, &which.name, &args.access).await?;
            show(&server, Method::DELETE, &query, "ended", args.access.output).await
        }
        (None, Some(which)) => {
            let server = Administered::connect(cluster, &which.name, &args.access).await?;
            show(&server, Method::GET, &which.query(), "sessions", args.access.output).await
        }
        (None, None) => bail!("name a server"),
    }
}

impl List {
    fn query(&self) -> Vec<(&str, &str)> {
        let given = [("user", &self.user), ("client", &self.client), ("session", &self.session)];
        given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect()
    }
}

async fn show(
    server: &Administered,
    method: Method,
    query: &[(&str, &str)],
    member: &str,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let sessions = server.all(method, SESSIONS, query, member).await?;
    match output {
        Output::Json => print(&format!("{:#}\n", json!({member: sessions})))?,
        Output::Table if sessions.is_empty() => eprintln!("No sessions found."),
        Output::Table => print(&table(HEAD, &sessions.iter().map(row).collect::<Vec<_>>()))?,
    }
    if member == "ended" && output == Output::Table {
        eprintln!("{} ended", sessions.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn row(session: &Value) -> [String; 7] {
    let text = |name: &str| session[name].as_str().filter(|text| !text.is_empty());
    let accounts = session["accounts"].as_array().into_iter().flatten();
    let accounts = accounts.map(|account| {
        let part = |name: &str| account[name].as_str().unwrap_or_default();
        format!("{}:{}", part("provider"), part("subject"))
    });
    [
        text("user"),
        text("email").or(text("name")),
        Some(&*accounts.collect::<Vec<_>>().join(",")).filter(|accounts| !accounts.is_empty()),
        text("client_name").or(text("client")),
        text("since"),
        text("until"),
        text("id"),
    ]
    .map(|cell| cell.unwrap_or("-").to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_session_is_a_row_without_control_characters() {
        let accounts = json!([{"provider": "corp", "subject": "a1"}]);
        let session = json!({
            "id": "s1", "user": "u1", "email": "ann@example.test", "accounts": accounts, "client": "c1",
            "client_name": "No\u{1b}tes", "since": "2026-01-01T00:00:00Z",
        });
        let expected = "\
USER  NAME              ACCOUNTS  CLIENT  SINCE                 UNTIL  SESSION
u1    ann@example.test  corp:a1   No\u{fffd}tes  2026-01-01T00:00:00Z  -      s1
";
        assert_eq!(table(HEAD, &[row(&session)]), expected);
    }

    #[test]
    fn a_list_and_an_end_name_the_server_and_what_is_meant() {
        let line = |words: &[&str]| Line::try_parse_from([&["sessions"], words].concat());
        let list = line(&["fetch", "--user", "ann", "-o", "json"]).unwrap().args;
        assert!(list.access.output == Output::Json && list.access.service_account() == "skep-sessions");
        assert_eq!(list.list.unwrap().query(), [("user", "ann")]);
        let end = line(&["end", "fetch", "--client", "c", "--service-account", "team/admin"]).unwrap().args;
        let Some(Command::End(which)) = end.command else { panic!("it ends sessions") };
        assert_eq!((which.query(), end.access.service_account()), (vec![("client", "c")], "team/admin"));
        assert!(line(&[]).is_err() && line(&["end"]).is_err());
    }
}
