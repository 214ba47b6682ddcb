//! All servers: from what is planned to what runs.

use std::collections::BTreeMap;

use super::{
    plan::Planned,
    running::{Phase, Running, State},
    table::Row,
};

/// The servers by kind and name, and what keeps others from running.
#[derive(Default)]
pub(super) struct Servers {
    order: Vec<(String, String)>,
    running: BTreeMap<String, Running>,
    problems: BTreeMap<String, String>,
    told: BTreeMap<String, State>,
}

impl Servers {
    /// Makes what runs what is planned. What has not changed goes on, and so does what cannot run as it is planned now.
    pub(super) async fn become_(&mut self, planned: Vec<Planned>) {
        self.order = planned.iter().map(|planned| (planned.owner.clone(), planned.name.clone())).collect();
        self.problems.clear();
        let gone: Vec<String> = self
            .running
            .keys()
            .filter(|owner| !self.order.iter().any(|(planned, _)| planned == *owner))
            .cloned()
            .collect();
        for owner in gone {
            self.end(&owner).await;
        }
        for Planned { owner, server, .. } in planned {
            let server = match server {
                Ok(server) => server,
                Err(problem) => {
                    self.problems.insert(owner, problem);
                    continue;
                }
            };
            if self.running.get(&owner).is_some_and(|running| running.server == *server) {
                continue;
            }
            let port = self.end(&owner).await;
            match Running::start(&server, port).await {
                Ok(running) => {
                    self.running.insert(owner, running);
                }
                Err(problem) => {
                    self.problems.insert(owner, problem);
                }
            }
        }
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

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// What keeps objects from running as they are, with their names.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.iter().map(|(owner, problem)| format!("{owner}: {problem}")).collect()
    }

    /// Whether it is known of each server how it is.
    pub(super) fn settled(&self) -> bool {
        self.running.values().all(|running| running.state.borrow().phase != Phase::Pending)
    }

    /// Those of which something is new since the last time.
    pub(super) fn news(&mut self) -> Vec<Row> {
        let rows = self.rows().into_iter();
        let rows: Vec<Row> = rows.filter(|row| self.told.get(&row.owner) != Some(&row.state)).collect();
        self.told.extend(rows.iter().map(|row| (row.owner.clone(), row.state.clone())));
        rows
    }

    /// All, in the order of the file.
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |(owner, name): &(String, String)| {
            let state = match (self.running.get(owner), self.problems.get(owner)) {
                (Some(running), _) => running.state.borrow().clone(),
                (None, Some(problem)) => {
                    State { phase: Phase::Failed, message: problem.clone(), ..State::default() }
                }
                (None, None) => return None,
            };
            Some(Row { owner: owner.clone(), name: name.clone(), state })
        };
        self.order.iter().filter_map(row).collect()
    }
}
