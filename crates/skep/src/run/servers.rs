//! All servers: from what is planned to what runs.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use super::{
    engine::Engine,
    plan::Planned,
    running::{Phase, Running, State},
    table::Row,
};

/// The servers by kind and name, and what keeps others from running.
#[derive(Default)]
pub(super) struct Servers {
    order: Vec<(String, String)>,
    running: BTreeMap<String, Running>,
    problems: BTreeMap<String, Problem>,
    told: BTreeMap<String, State>,
    engine: Option<Arc<Engine>>,
    /// How many containers were removed that others left behind.
    pub(super) leftovers: usize,
}

/// What keeps a server from running.
struct Problem {
    /// Where that is seen, as `file:line: `.
    place: String,
    problem: String,
}

impl Servers {
    /// Makes what runs what is planned. What has not changed goes on, and so does what cannot run as it is planned now.
    pub(super) async fn become_(&mut self, planned: Vec<Planned>, engines: &[PathBuf]) {
        self.order = planned.iter().map(|planned| (planned.owner.clone(), planned.name.clone())).collect();
        self.problems.clear();
        // Whoever looks at it wants to see all of it.
        self.told.clear();
        let gone: Vec<String> = self
            .running
            .keys()
            .filter(|owner| !self.order.iter().any(|(planned, _)| planned == *owner))
            .cloned()
            .collect();
        for owner in gone {
            self.end(&owner).await;
        }
        for Planned { owner, name, server, place, .. } in planned {
            let server = match server {
                Ok(server) => server,
                Err(problem) => {
                    self.problems.insert(owner, Problem { place: place(&problem), problem });
                    continue;
                }
            };
            if self.running.get(&owner).is_some_and(|running| running.server == *server) {
                continue;
            }
            let port = self.end(&owner).await;
            let engine = if server.image.is_some() { self.engine(engines).await.map(Some) } else { Ok(None) };
            let started = match engine {
                Ok(engine) => Running::start(&name, &server, port, engine).await,
                Err(problem) => Err(problem),
            };
            match started {
                Ok(running) => {
                    self.running.insert(owner, running);
                }
                Err(problem) => {
                    self.problems.insert(owner, Problem { place: place(&problem), problem });
                }
            }
        }
    }

    /// The engine that runs images, which is looked for when the first is to run.
    async fn engine(&mut self, sockets: &[PathBuf]) -> Result<Arc<Engine>, String> {
        if let Some(engine) = &self.engine {
            return Ok(engine.clone());
        }
        let (engine, leftovers) = Engine::connect(sockets).await?;
        self.leftovers += leftovers;
        self.engine = Some(engine.clone());
        Ok(engine)
    }

    /// Ends one, and says which port it had.
    async fn end(&mut self, owner: &str) -> Option<u16> {
        let running = self.running.remove(owner)?;
        self.told.remove(owner);
        let port = running.port;
        running.stop().await;
        Some(port)
    }

    /// Ends all at once.
    pub(super) async fn end_all(&mut self) {
        let all = std::mem::take(&mut self.running).into_values().map(Running::stop);
        futures::future::join_all(all).await;
    }

    /// Removes containers that are still there, because somebody was in a hurry or they would not end.
    pub(super) async fn remove_containers(&self) {
        if let Some(engine) = &self.engine {
            engine.remove_own().await;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// What keeps objects from running as they are, with their names.
    pub(super) fn problems(&self) -> Vec<String> {
        let said =
            |(owner, Problem { place, problem }): (&String, &Problem)| format!("{place}{owner}: {problem}");
        self.problems.iter().map(said).collect()
    }

    /// Those of which it is not known yet how they are.
    pub(super) fn pending(&self) -> Vec<Row> {
        self.rows().into_iter().filter(|row| row.state.phase == Phase::Pending).collect()
    }

    /// Those of which something is new since the last time. That one has begun is nothing new.
    pub(super) fn news(&mut self) -> Vec<Row> {
        let is_news = |row: &Row| row.state.phase != Phase::Pending || !row.state.message.is_empty();
        let rows = self.rows().into_iter().filter(is_news);
        let rows: Vec<Row> = rows.filter(|row| self.told.get(&row.owner) != Some(&row.state)).collect();
        self.told.extend(rows.iter().map(|row| (row.owner.clone(), row.state.clone())));
        rows
    }

    /// All, in the order of the file.
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |(owner, name): &(String, String)| {
            let (place, state) = match (self.running.get(owner), self.problems.get(owner)) {
                (Some(running), None) => (String::new(), running.state.borrow().clone()),
                // It goes on as it was.
                (Some(running), Some(Problem { place, problem })) => {
                    let message = format!("{problem}; what runs goes on as it is");
                    (place.clone(), State { message, ..running.state.borrow().clone() })
                }
                (None, Some(Problem { place, problem })) => (
                    place.clone(),
                    State { phase: Phase::Failed, message: problem.clone(), ..State::default() },
                ),
                (None, None) => return None,
            };
            Some(Row { place, owner: owner.clone(), name: name.clone(), state })
        };
        self.order.iter().filter_map(row).collect()
    }
}
