//! All servers: from a plan to running servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use skep_config::{FieldError, FieldPath};
use skep_console::{CallLog, CallLogs, Key};
use tracing::warn;

use super::{
    engine::Engine,
    machine::Machine,
    plan::{Planned, PlannedServer, Server},
    running::{Phase, Prepared, Running, State, Workload},
    table::Row,
    virtual_server::{self, VirtualServer},
};

/// The servers by kind and name, and the problems of those that cannot run.
#[derive(Default)]
pub(super) struct Servers {
    order: Vec<Listed>,
    /// Where calls are recorded, if they are.
    calls: Option<Arc<CallLogs>>,
    running: BTreeMap<String, Running>,
    problems: BTreeMap<String, Vec<Problem>>,
    shown: BTreeMap<String, State>,
    /// Those that have been ready.
    was_ready: BTreeSet<String>,
    engine: Option<Arc<Engine>>,
    /// How many containers of earlier processes were removed.
    pub(super) leftovers: usize,
}

/// A server of the plan.
struct Listed {
    owner: String,
    name: String,
    key: Key,
}

/// Why a server cannot run.
struct Problem {
    /// Its position, as `file:line: `.
    place: String,
    problem: String,
}

impl Problem {
    fn all(errors: &[FieldError], place: &dyn Fn(&FieldPath) -> String) -> Vec<Self> {
        let problem = |error: &FieldError| Self { place: place(&error.field), problem: error.to_string() };
        errors.iter().map(problem).collect()
    }

    /// The place of the first problem, and all problems in one line, the others with their places.
    fn summary(problems: &[Self]) -> (String, String) {
        let place = problems.first().map(|first| first.place.clone()).unwrap_or_default();
        let texts = problems.iter().enumerate().map(|(index, Self { place, problem })| match index {
            0 => problem.clone(),
            _ => format!("{place}{problem}"),
        });
        (place, texts.collect::<Vec<_>>().join("; "))
    }
}

impl Servers {
    /// No servers yet. Their calls are going to be recorded here, if they are to be.
    pub(super) fn new(calls: Option<Arc<CallLogs>>) -> Self {
        Self { calls, ..Self::default() }
    }

    /// Applies a plan. Servers that did not change keep running, and so do servers whose new plan is invalid.
    /// `report` gets the progress of what that waits for.
    pub(super) async fn apply(&mut self, planned: Vec<Planned>, machine: &Machine, report: &dyn Fn(&str)) {
        let listed = |planned: &Planned| Listed {
            owner: planned.owner.clone(),
            name: planned.name.clone(),
            key: planned.key.clone(),
        };
        self.order = planned.iter().map(listed).collect();
        self.problems.clear();
        // Show all rows again.
        self.shown.clear();
        let removed: Vec<String> = self
            .running
            .keys()
            .filter(|owner| !self.order.iter().any(|planned| planned.owner == **owner))
            .cloned()
            .collect();
        for owner in removed {
            self.end(&owner).await;
        }
        let mut joined = Vec::new();
        for Planned { owner, name, key, server, place, .. } in planned {
            let calls = self.calls.as_ref().map(|calls| calls.of(&key));
            let started = match server {
                Ok(PlannedServer::Proxied(server)) => self
                    .run(&owner, &name, &server, calls, machine, report)
                    .await
                    .map_err(|error| vec![error]),
                Ok(PlannedServer::Virtual(server)) => {
                    joined.push((owner, name, server, calls, place));
                    continue;
                }
                Err(errors) => Err(errors),
            };
            if let Err(errors) = started {
                self.problems.insert(owner, Problem::all(&errors, place.as_ref()));
            }
        }
        // They need the addresses of the others.
        for (owner, name, server, calls, place) in joined {
            if let Err(error) = self.join(&owner, &name, &server, calls).await {
                self.problems.insert(owner, Problem::all(&[error], place.as_ref()));
            }
        }
    }

    /// Runs a server, unless it runs already.
    async fn run(
        &mut self,
        owner: &str,
        name: &str,
        server: &Server,
        calls: Option<Arc<CallLog>>,
        machine: &Machine,
        report: &dyn Fn(&str),
    ) -> Result<(), FieldError> {
        let runs =
            |running: &Running| matches!(&running.workload, Workload::Server(same) if **same == *server);
        if self.running.get(owner).is_some_and(runs) {
            return Ok(());
        }
        self.replace(owner, name, server, calls, machine, report).await
    }

    /// Runs a virtual server. If only its members have changed, its sessions go on.
    async fn join(
        &mut self,
        owner: &str,
        name: &str,
        server: &VirtualServer,
        calls: Option<Arc<CallLog>>,
    ) -> Result<(), FieldError> {
        let states = self.ready();
        let address = |member: &str| states.get(member).cloned();
        if let Some(Running { workload: Workload::Virtual(joined), .. }) = self.running.get_mut(owner)
            && joined.update(server, address)?
        {
            return Ok(());
        }
        let socket = self.running.get(owner).and_then(|previous| previous.socket(None));
        let running = virtual_server::start(name, server, server.local(address), socket, calls)?;
        self.end(owner).await;
        self.running.insert(owner.to_owned(), running);
        Ok(())
    }

    /// Lets virtual servers use servers that have become ready.
    pub(super) fn update_virtual_servers(&mut self) {
        let states = self.ready();
        for (owner, running) in &mut self.running {
            if let Workload::Virtual(joined) = &mut running.workload {
                let planned = joined.planned();
                if let Err(error) = joined.update(&planned, |member| states.get(member).cloned()) {
                    warn!(%owner, %error, "a virtual server could not be updated");
                }
            }
        }
    }

    /// The servers that have been ready since they were started. One that fails later is reported by its virtual server.
    fn ready(&mut self) -> BTreeMap<String, State> {
        for (owner, running) in &self.running {
            if running.state.borrow().phase == Phase::Ready {
                self.was_ready.insert(owner.clone());
            }
        }
        self.was_ready.retain(|owner| self.running.contains_key(owner));
        let state = |owner: &String| Some((owner.clone(), self.running.get(owner)?.state.borrow().clone()));
        self.was_ready.iter().filter_map(state).collect()
    }

    /// Starts a server in place of the running one. That runs until the new one can be started.
    async fn replace(
        &mut self,
        owner: &str,
        name: &str,
        server: &Server,
        calls: Option<Arc<CallLog>>,
        machine: &Machine,
        report: &dyn Fn(&str),
    ) -> Result<(), FieldError> {
        let problem = |message: String| FieldError::new("", message);
        let engine = match server.image {
            Some(_) => {
                let engine = self.engine(machine).await.map_err(problem)?;
                if engine.is_remote() && server.needs_this_machine() {
                    let message = "the container engine is on another machine, and the server needs files or ports of this one: use \
                                   a local engine, or a server that speaks stdio and has no volumes";
                    return Err(problem(message.into()));
                }
                Some(engine)
            }
            None => None,
        };
        let previous = self.running.get(owner);
        let prepared = Prepared::new(name, server, previous, machine, engine, calls)?;
        if previous.is_some() {
            prepared.pull_image(|news| report(&format!("{owner}: {news}"))).await.map_err(problem)?;
            self.end(owner).await;
        }
        self.running.insert(owner.to_owned(), prepared.start()?);
        Ok(())
    }

    /// The container engine. It is connected when the first image is to run.
    async fn engine(&mut self, machine: &Machine) -> Result<Arc<Engine>, String> {
        if let Some(engine) = &self.engine {
            return Ok(engine.clone());
        }
        let endpoints = machine.engines.as_deref().unwrap_or_default();
        let (engine, leftovers) = Engine::connect(endpoints).await?;
        self.leftovers += leftovers;
        self.engine = Some(engine.clone());
        Ok(engine)
    }

    /// Stops one, if it runs.
    async fn end(&mut self, owner: &str) {
        self.shown.remove(owner);
        if let Some(running) = self.running.remove(owner) {
            running.stop().await;
        }
    }

    /// Stops all at the same time.
    pub(super) async fn end_all(&mut self) {
        let all = std::mem::take(&mut self.running).into_values().map(Running::stop);
        futures::future::join_all(all).await;
    }

    /// Removes remaining containers, after a second signal or a timeout.
    pub(super) async fn remove_containers(&self) {
        if let Some(engine) = &self.engine {
            engine.remove_own().await;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The problems, with the names of the objects.
    pub(super) fn problems(&self) -> Vec<String> {
        let lines = self.problems.iter().flat_map(|(owner, problems)| {
            problems.iter().map(move |Problem { place, problem }| format!("{place}{owner}: {problem}"))
        });
        lines.collect()
    }

    /// The servers whose state is not known yet.
    pub(super) fn pending(&self) -> Vec<Row> {
        self.rows().into_iter().filter(|row| row.state.phase == Phase::Pending).collect()
    }

    /// The rows that changed since the last call. A server that just started is not included.
    pub(super) fn news(&mut self) -> Vec<Row> {
        let is_news = |row: &Row| row.state.phase != Phase::Pending || !row.state.message.is_empty();
        let rows = self.rows().into_iter().filter(is_news);
        let rows: Vec<Row> = rows.filter(|row| self.shown.get(&row.owner) != Some(&row.state)).collect();
        self.shown.extend(rows.iter().map(|row| (row.owner.clone(), row.state.clone())));
        rows
    }

    /// All, in the order of the file.
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |Listed { owner, name, key }: &Listed| {
            let (place, state) = match (self.running.get(owner), self.problems.get(owner)) {
                (Some(running), None) => (String::new(), running.state.borrow().clone()),
                // The old one keeps running.
                (Some(running), Some(problems)) => {
                    let (place, message) = Problem::summary(problems);
                    let message = format!("{message}; the running server is not changed");
                    (place, State { message, ..running.state.borrow().clone() })
                }
                (None, Some(problems)) => {
                    let (place, message) = Problem::summary(problems);
                    (place, State { phase: Phase::Failed, message, ..State::default() })
                }
                (None, None) => return None,
            };
            Some(Row { place, owner: owner.clone(), name: name.clone(), key: key.clone(), state })
        };
        self.order.iter().filter_map(row).collect()
    }
}
