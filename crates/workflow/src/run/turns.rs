//! Who may ask the user.
//!
//! Where runs are kept, a question is sent while no other step runs, and one at a time: what is kept then is all there is, and
//! a process that goes on from there runs no step a second time.

use tokio::sync::watch;

/// The turns of one run.
pub(super) struct Turns(watch::Sender<State>);

#[derive(Default)]
struct State {
    /// The steps that have started and not ended.
    running: usize,
    /// Those of them that have a question.
    waiting: usize,
    is_asking: bool,
    /// The step whose turn is first.
    first: Option<String>,
}

impl Turns {
    /// Turns in which this step is the first.
    pub(super) fn new(first: Option<String>) -> Self {
        Self(watch::Sender::new(State { first, ..State::default() }))
    }

    pub(super) fn set_running(&self, running: usize) {
        self.0.send_modify(|state| state.running = running);
    }

    /// Waits until a step may ask.
    pub(super) async fn take(&self, step: &str) -> Turn<'_> {
        let mut changes = self.0.subscribe();
        self.0.send_modify(|state| state.waiting += 1);
        let mut turn = Turn { turns: self, is_asking: false };
        while !turn.is_asking {
            turn.is_asking = self.0.send_if_modified(|state| state.ask(step));
            if !turn.is_asking && changes.changed().await.is_err() {
                break;
            }
        }
        turn
    }
}

impl State {
    /// Lets a step ask, if it may.
    fn ask(&mut self, step: &str) -> bool {
        let is_first = self.first.as_deref().is_none_or(|first| first == step);
        let may_ask = is_first && !self.is_asking && self.running == self.waiting;
        if may_ask {
            self.is_asking = true;
            self.first = None;
        }
        may_ask
    }
}

/// The turn of a step, as long as it has this.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    is_asking: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.0.send_modify(|state| {
            state.waiting -= 1;
            state.is_asking &= !self.is_asking;
        });
    }
}
