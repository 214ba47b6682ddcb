//! `kubectl skep clients`: the clients that have registered at the authorization server of a server.

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};
use skep_config::administration::{CLIENTS, SESSIONS};

use super::administration::{AccessArgs, Administered, Output};
use crate::{
    cluster::Cluster,
    output::{print, table},
};

/// List the clients that have registered at the authorization server of a server and were used, or forget one.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// The name of the server.
    #[arg(required = true)]
    name: Option<String>,

    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Forget a client: its registration, its sessions, and that users have approved it.
    Forget {
        /// The name of the server.
        name: String,
        /// The id of the client.
        client: String,
    },
}

const HEAD: [&str; 4] = ["CLIENT", "NAME", "SECRET", "REDIRECTS"];

pub(super) async fn run(cluster: &Cluster, args: &Args) -> anyhow::Result<ExitCode> {
    match (&args.command, &args.name) {
        (Some(Command::Forget { name, client }), _) => {
            let server = Administered::connect(cluster, name, &args.access).await?;
            forget(&server, client, args.access.output).await
        }
        (None, Some(name)) => {
            let server = Administered::connect(cluster, name, &args.access).await?;
            list(&server, args.access.output).await
        }
        (None, None) => bail!("name a server"),
    }
}

async fn list(server: &Administered, output: Output) -> anyhow::Result<ExitCode> {
    let clients = server.all(Method::GET, CLIENTS, &[], "clients").await?;
    match output {
        Output::Json => print(&format!("{:#}\n", json!({"clients": clients})))?,
        Output::Table if clients.is_empty() => eprintln!("No clients found."),
        Output::Table => print(&table(HEAD, &clients.iter().map(row).collect::<Vec<_>>()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The registration first, so that the client continues no session and gets no other one meanwhile.
async fn forget(server: &Administered, client: &str, output: Output) -> anyhow::Result<ExitCode> {
    let query = [("client", client)];
    let forgotten = server.request(Method::DELETE, CLIENTS, &query).await?;
    let ended = server.all(Method::DELETE, SESSIONS, &query, "ended").await?;
    let registered = forgotten["registered"] == true;
    match output {
        Output::Json => print(&format!("{:#}\n", json!({"registered": registered, "ended": ended})))?,
        Output::Table => {
            let was = if registered { "registration removed" } else { "no registration" };
            print(&format!("{was}, approvals forgotten, {} sessions ended\n", ended.len()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(client: &Value) -> [String; 4] {
    let text = |name: &str| client[name].as_str().filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
    let uris = client["redirect_uris"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let secret = if client["public"] == true { "no" } else { "yes" };
    [text("id"), text("name"), secret.into(), uris.collect::<Vec<_>>().join(",")]
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::{super::administration::tests::scripted, *};

    #[tokio::test]
    async fn the_registration_of_a_client_is_removed_before_its_sessions_end() {
        let (server, requests) = scripted(vec![
            (StatusCode::OK, json!({"registered": true})),
            (StatusCode::OK, json!({"ended": [{"id": "s"}]})),
        ])
        .await;
        forget(&server, "https://app.example/c", Output::Table).await.unwrap();
        let query = "client=https%3A%2F%2Fapp.example%2Fc Bearer t";
        let expected = [format!("DELETE /skep/clients?{query}"), format!("DELETE /skep/sessions?{query}")];
        assert_eq!(*requests.lock().unwrap(), expected);
    }

    #[test]
    fn a_client_is_a_row() {
        let client =
            json!({"id": "c", "name": "", "redirect_uris": ["http://a/", "http://b/"], "public": true});
        assert_eq!(row(&client), ["c", "-", "no", "http://a/,http://b/"]);
    }
}
