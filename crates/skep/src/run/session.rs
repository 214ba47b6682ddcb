//! A run: servers that follow their files, and what is printed about them.

use std::{sync::Arc, time::Duration};

use anyhow::{bail, ensure};
use skep_operator::{render::render, settings::Settings};

use super::{
    console::RunConsole,
    machine::Machine,
    plan::{Planned, left_out, plan},
    record::ServerRecord,
    runs::RunFolder,
    screen::Screen,
    servers::Servers,
    source::Source,
    table::{self, Row, Table},
    virtual_server::with_known_members,
};
use crate::manifests::{ManifestText, Manifests};

/// How often states are polled.
const LOOK: Duration = Duration::from_millis(200);
/// How often the files are read, in polls.
const READ: u32 = 2;
/// How long the line for clients waits for slow servers once one is ready, in polls.
const ENOUGH: u32 = 25;

/// The running servers, and where they come from.
pub(super) struct Session {
    source: Source,
    machine: Machine,
    pub(super) screen: Screen,
    pub(super) servers: Servers,
    folder: Option<RunFolder>,
    console: Option<RunConsole>,
    /// What the files contain.
    manifests: Arc<Manifests>,
}

impl Session {
    pub(super) fn new(
        source: Source,
        machine: Machine,
        screen: Screen,
        folder: Option<RunFolder>,
        console: Option<RunConsole>,
    ) -> Self {
        let servers = Servers::new(console.as_ref().map(|console| console.calls.clone()));
        Self { source, machine, screen, servers, folder, console, manifests: Arc::default() }
    }

    /// Stops all servers, and the console.
    pub(super) async fn end(&mut self) {
        let console = self.console.take();
        let stopped = async { futures::future::OptionFuture::from(console.map(RunConsole::stop)).await };
        tokio::join!(self.servers.end_all(), stopped);
    }

    /// Stores the states for `skep ls`, and shows them in the console.
    fn record(&mut self) {
        let rows = self.servers.rows();
        if let Some(console) = &self.console {
            console.show(&self.manifests, &rows);
        }
        if let Some(folder) = &mut self.folder {
            folder.write(rows.iter().map(ServerRecord::from).collect());
        }
    }

    /// Runs the servers, and prints their states.
    pub(super) async fn run(&mut self, planned: Plan) -> anyhow::Result<()> {
        self.apply(planned).await?;
        if self.servers.is_empty() {
            bail!("{}", self.servers.problems().join("\n"));
        }
        if let Some(console) = &self.console {
            self.screen.print(&format!("Console: {}\n", console.url))?;
        }
        loop {
            let rows = self.servers.rows();
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            let is_detached = self.folder.as_ref().is_some_and(RunFolder::is_detached);
            let hint = if is_detached { "" } else { " Press Ctrl-C to stop." };
            self.screen.print(&format!("Starting {}.{hint}\n\n", names.join(", ")))?;
            let table = (!self.screen.is_json()).then(|| Table::new(&rows, self.screen.width()));
            if let Some(table) = &table {
                self.screen.print(&table.head())?;
            }
            self.watch(table.as_ref()).await?;
        }
    }

    /// Prints what changes, as rows of the table if there is one, until the file changes.
    async fn watch(&mut self, table: Option<&Table>) -> anyhow::Result<()> {
        let (mut printed, mut enough) = (false, 0);
        for turn in 1u32.. {
            self.record();
            tokio::time::sleep(LOOK).await;
            self.servers.update_virtual_servers();
            for row in self.servers.news() {
                let line = match table {
                    Some(table) => table.row(&row),
                    None => serde_json::to_string(&ServerRecord::from(&row))? + "\n",
                };
                self.screen.print_result(&line)?;
            }
            let pending = self.servers.pending();
            self.screen.wait_for(&waiting(&pending, LOOK * turn));
            enough = if pending.len() < self.servers.rows().len() { enough + 1 } else { 0 };
            if table.is_some() && !printed && (pending.is_empty() || enough >= ENOUGH) {
                self.screen.print(&table::for_clients(&self.servers.rows()))?;
                printed = true;
            }
            if turn % READ == 0 && self.reload().await? {
                break;
            }
        }
        Ok(())
    }

    /// Reloads the file if it changed. An unreadable or invalid file changes nothing.
    async fn reload(&mut self) -> anyhow::Result<bool> {
        // An editor may be replacing it.
        let Ok(Some(texts)) = self.source.news() else { return Ok(false) };
        match load_plan(&self.source, &texts, &self.machine).await {
            Ok(planned) => {
                self.screen.print(&format!("\n{}changed, reloading\n", self.source.place()))?;
                self.apply(planned).await?;
                Ok(true)
            }
            Err(error) => {
                self.screen.print(&format!("{error:#}; running servers are not changed\n"))?;
                Ok(false)
            }
        }
    }

    /// Applies a plan, and prints warnings about its objects.
    async fn apply(&mut self, Plan { servers: planned, left_out, manifests }: Plan) -> anyhow::Result<()> {
        self.manifests = manifests;
        for line in left_out {
            self.screen.print(&format!("{line}\n"))?;
        }
        for Planned { owner, warnings, .. } in &planned {
            for warning in warnings {
                self.screen.print(&format!("{owner}: {warning}\n"))?;
            }
        }
        let report = |line: &str| {
            self.screen.print(&format!("{line}\n")).ok();
        };
        self.servers.apply(planned, &self.machine, &report).await;
        let leftovers = std::mem::take(&mut self.servers.leftovers);
        if leftovers > 0 {
            self.screen.print(&format!("Removed containers of an earlier skep run: {leftovers}\n"))?;
        }
        Ok(())
    }
}

/// The line that shows what is waited for.
fn waiting(pending: &[Row], time: Duration) -> String {
    let names: Vec<&str> = pending.iter().map(|row| row.name.as_str()).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("Waiting for {} ({} s)", names.join(", "), time.as_secs())
    }
}

/// The servers of all sources.
pub(super) struct Plan {
    servers: Vec<Planned>,
    /// Messages about objects that do not run here.
    left_out: Vec<String>,
    manifests: Arc<Manifests>,
}

pub(super) async fn load_plan(
    source: &Source,
    texts: &[ManifestText],
    machine: &Machine,
) -> anyhow::Result<Plan> {
    let manifests = Arc::new(source.manifests(texts)?);
    let settings = Settings { proxy_host: "127.0.0.1".into(), ..Settings::default() };
    let rendered = render(with_known_members(&manifests.objects), settings)
        .await
        .map_err(|error| anyhow::anyhow!("{}{error}", manifests.place_of(&error)))?;
    let servers = plan(&manifests, &rendered, machine);
    ensure!(
        !servers.is_empty(),
        "{}nothing to run: it has no MCPServer, MCPRemoteProxy or VirtualMCPServer",
        source.place()
    );
    Ok(Plan { servers, left_out: left_out(&rendered), manifests })
}
