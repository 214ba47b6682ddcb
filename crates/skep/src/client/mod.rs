//! `skep client`: the servers of `skep run` in the configuration of MCP clients.

mod added;
mod config_file;
mod diff;
mod json_edit;
mod known;

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use self::{
    added::Added,
    config_file::ConfigFile,
    diff::diff,
    json_edit::{value_of, with_member},
    known::KnownClient,
};
use crate::{output::print, run};

/// Add servers of skep run to the configuration of an MCP client, and remove them.
///
/// The file of the client is changed at the place of the servers only, and its previous text is kept in FILE.skep-backup. Servers
/// that you have configured yourself are not touched.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep client add cursor\n  skep client add claude-code fetch --dry-run\n  skep client remove cursor\n  skep client ls"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add servers that run now. Their URLs are the same after the next start.
    Add(Change),
    /// Remove servers that were added.
    Remove(Change),
    /// List the clients, their files, and the servers that were added.
    Ls,
}

#[derive(clap::Args)]
struct Change {
    /// The client.
    client: KnownClient,

    /// The names of the servers, as skep ls prints them. Default: all.
    servers: Vec<String>,

    /// Only show what would change.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut added = Added::read(run::clients_file());
    match &args.command {
        Command::Add(change) => add(change, &mut added),
        Command::Remove(change) => remove(change, &mut added),
        Command::Ls => list(&mut added),
    }
}

fn file_of(client: KnownClient) -> anyhow::Result<PathBuf> {
    client.file(|name| env::var_os(name).map(PathBuf::from)).context("HOME is not set")
}

fn add(Change { client, servers, dry_run }: &Change, added: &mut Added) -> anyhow::Result<()> {
    let path = file_of(*client)?;
    let name = client.name();
    ensure!(
        KnownClient::is_installed(&path),
        "{name} is not installed: the folder of {} does not exist",
        path.display()
    );
    let running = run::running_servers();
    check_names(servers, running.iter().map(|server| server.name.as_str()))?;
    ensure!(!running.is_empty(), "no server is running: start one with skep run");
    let file = ConfigFile::read(&path)?;
    let configured = configured(&file.text, *client);
    let mut text = file.text.clone();
    for server in running.iter().filter(|server| servers.is_empty() || servers.contains(&server.name)) {
        let entry = client.entry(&server.url, &server.transport);
        let own = added.of(name).get(&server.name);
        let is_other = configured.get(&server.name).is_some_and(|now| Some(now) != own && *now != entry);
        ensure!(
            !is_other,
            "{}: you have configured a server {} yourself: rename one of them",
            path.display(),
            server.name
        );
        text = with_member(&text, client.section(), &server.name, Some(&entry))
            .with_context(|| path.display().to_string())?;
        added.of(name).insert(server.name.clone(), entry);
    }
    finish(&path, &file, &text, *dry_run, added)
}

fn remove(Change { client, servers, dry_run }: &Change, added: &mut Added) -> anyhow::Result<()> {
    let (path, name) = (file_of(*client)?, client.name());
    check_names(servers, added.of(name).keys().map(String::as_str))?;
    let file = ConfigFile::read(&path)?;
    let configured = configured(&file.text, *client);
    let mut text = file.text.clone();
    let entries = added.of(name);
    let chosen: Vec<String> =
        entries.keys().filter(|server| servers.is_empty() || servers.contains(server)).cloned().collect();
    for server in chosen {
        let own = entries.remove(&server);
        match configured.get(&server) {
            Some(now) if Some(now) == own.as_ref() => {
                text = with_member(&text, client.section(), &server, None)
                    .with_context(|| path.display().to_string())?;
            }
            Some(_) => print(&format!("{server} was changed since skep added it, and stays\n"))?,
            None => {}
        }
    }
    finish(&path, &file, &text, *dry_run, added)
}

/// Prints the difference, and writes it.
fn finish(path: &Path, file: &ConfigFile, text: &str, dry_run: bool, added: &Added) -> anyhow::Result<()> {
    print(&diff(path, &file.text, text))?;
    if file.text == *text {
        print("nothing to change\n")?;
    }
    if dry_run {
        return Ok(());
    }
    if file.text != *text
        && let Some(backup) = file.replace(text)?
    {
        print(&format!("the previous file is {}\n", backup.display()))?;
    }
    added.write()
}

fn list(added: &mut Added) -> anyhow::Result<()> {
    for client in KnownClient::ALL {
        let path = file_of(client)?;
        let installed = if KnownClient::is_installed(&path) { "" } else { " (not installed)" };
        let servers: Vec<&str> = added.of(client.name()).keys().map(String::as_str).collect();
        let servers = if servers.is_empty() { "-".to_owned() } else { servers.join(", ") };
        print(&format!("{:<14}  {}{installed}  {servers}\n", client.name(), path.display()))?;
    }
    Ok(())
}

/// The servers in the configuration of a client.
fn configured(text: &str, client: KnownClient) -> serde_json::Map<String, Value> {
    let config = value_of(text).unwrap_or_default();
    config[client.section()].as_object().cloned().unwrap_or_default()
}

fn check_names<'a>(names: &[String], known: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    let known: BTreeSet<&str> = known.collect();
    for name in names {
        let all: Vec<&str> = known.iter().copied().collect();
        ensure!(known.contains(name.as_str()), "there is no server {name}, only: {}", all.join(", "));
    }
    Ok(())
}
