//! The data of templates.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use skep_gocompat::template::Template;

use super::{Checkpoint, step::Ended, turns::Turns};
use crate::{Answer, StepStatus, compiled::Argument};

/// How many bytes the results of all steps may take.
const RESULTS: usize = 64 << 20;

/// What templates refer to, and how far the run is. All steps of one run share it.
pub(super) struct Data {
    value: Mutex<Value>,
    state: Mutex<State>,
    /// How many bytes results may still have.
    room: AtomicUsize,
    started: Instant,
    /// How long the run may take.
    time: Duration,
    pub(super) turns: Turns,
}

#[derive(Default)]
struct State {
    /// The steps that have started and not ended.
    started: Vec<String>,
    /// Those that had started when the run was resumed.
    resumed: Vec<String>,
    /// The output of the last step that completed.
    last: Value,
    /// Whether no other step starts.
    skips_rest: bool,
    /// The step that waited when the run was resumed, and since when.
    waited: Option<(String, Timestamp)>,
    /// Its answer.
    answer: Option<Answer>,
}

/// The item that a step runs for: its name in templates, its position, and itself.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) index: usize,
    pub(super) value: &'a Value,
}

impl Data {
    pub(super) fn new(parameters: Map<String, Value>, time: Duration) -> Self {
        let value = json!({
            "params": parameters,
            "steps": {},
            "vars": {},
            "workflow": {
                "id": uuid::Uuid::new_v4().to_string(),
                "step_count": 0,
                "status": "running",
                "start_time": Timestamp::now().to_string(),
            },
        });
        Self {
            value: Mutex::new(value),
            state: Mutex::new(State { last: json!({}), ..State::default() }),
            room: AtomicUsize::new(RESULTS),
            started: Instant::now(),
            time,
            turns: Turns::new(None),
        }
    }

    /// The data of a run that goes on.
    pub(super) fn resumed(checkpoint: Checkpoint, answer: Option<Answer>, time: Duration) -> Self {
        let Checkpoint { step, sent, started, data, last, skips_rest, room } = checkpoint;
        let began = data["workflow"]["start_time"].as_str().and_then(|time| time.parse().ok());
        let first = answer.is_none().then(|| step.clone());
        let waited = Some((step, sent));
        let state = State { resumed: started, last, skips_rest, waited, answer, ..State::default() };
        Self {
            value: Mutex::new(data),
            state: Mutex::new(state),
            room: AtomicUsize::new(room.min(RESULTS)),
            started: Instant::now().checked_sub(since(began.unwrap_or(sent))).unwrap_or_else(Instant::now),
            time,
            turns: Turns::new(first),
        }
    }

    /// Where the run is, while this step waits for an answer.
    pub(super) fn checkpoint(&self, step: &str) -> Checkpoint {
        let state = self.state();
        let sent = state.waited.as_ref().filter(|(waited, _)| waited == step).map(|(_, sent)| *sent);
        Checkpoint {
            step: step.to_owned(),
            sent: sent.unwrap_or_else(Timestamp::now),
            started: state.started.clone(),
            data: self.value().clone(),
            last: state.last.clone(),
            skips_rest: state.skips_rest,
            room: self.room.load(Ordering::Relaxed),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the run may still take.
    pub(super) fn rest(&self) -> Duration {
        self.time.saturating_sub(self.started.elapsed())
    }

    /// The answer to the question of this step, with which the run was resumed.
    pub(super) fn take_answer(&self, step: &str) -> Option<Answer> {
        let mut state = self.state();
        let is_of = state.waited.as_ref().is_some_and(|(waited, _)| waited == step);
        if is_of { state.answer.take() } else { None }
    }

    /// How long this step had waited for an answer when the run was resumed.
    pub(super) fn waited(&self, step: &str) -> Duration {
        let state = self.state();
        let waited = state.waited.as_ref().filter(|(waited, _)| waited == step);
        waited.map(|(_, sent)| since(*sent)).unwrap_or_default()
    }

    /// Whether a step may start, as far as others do not prevent it.
    pub(super) fn may_start(&self, step: &str) -> bool {
        let state = self.state();
        !state.skips_rest || state.resumed.iter().any(|resumed| resumed == step)
    }

    pub(super) fn start(&self, step: &str) {
        self.state().started.push(step.to_owned());
    }

    /// Whether a step has ended.
    pub(super) fn has_step(&self, step: &str) -> bool {
        self.value()["steps"].get(step).is_some()
    }

    /// The output of the last step that completed.
    pub(super) fn last(&self) -> Value {
        self.state().last.clone()
    }

    fn value(&self) -> MutexGuard<'_, Value> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for the result of a step.
    pub(super) fn take_room(&self, result: &Value) -> Result<(), String> {
        let bytes = size(result);
        let taken = |room: usize| room.checked_sub(bytes);
        match self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) {
            Ok(_) => Ok(()),
            Err(_) => Err("the results of all steps are too large".into()),
        }
    }

    /// All steps have ended.
    pub(super) fn complete(&self) {
        self.value()["workflow"]["status"] = "completed".into();
    }

    pub(super) fn put_step(&self, id: &str, ended: &Ended) {
        let mut state = self.state();
        state.started.retain(|started| started != id);
        state.skips_rest |= ended.skips_rest;
        if ended.status == StepStatus::Completed {
            state.last = ended.output.clone();
        }
        drop(state);
        let mut value = self.value();
        let mut step = json!({
            "status": ended.status.as_str(),
            "output": ended.output,
            "content": ended.content,
        });
        if let Some(error) = &ended.error {
            step["error"] = error.as_str().into();
        }
        value["steps"][id] = step;
        let count = value["steps"].as_object().map_or(0, Map::len);
        value["workflow"]["step_count"] = count.into();
    }

    /// The text of a template.
    pub(super) fn render(&self, template: &Template, item: Option<Item<'_>>) -> Result<String, String> {
        let mut value = self.value();
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        value["workflow"]["duration_ms"] = elapsed.into();
        if let Some(Item { name, index, value: item }) = item {
            let mut fields = Map::new();
            fields.insert("index".into(), index.into());
            fields.insert(name.into(), item.clone());
            value["forEach"] = Value::Object(fields);
        }
        let rendered = template.render(&value).map_err(|error| error.to_string());
        if let Some(value) = value.as_object_mut() {
            value.remove("forEach");
        }
        rendered
    }

    /// The value of an argument.
    pub(super) fn argument(&self, argument: &Argument, item: Option<Item<'_>>) -> Result<Value, String> {
        Ok(match argument {
            Argument::Fixed(value) => value.clone(),
            Argument::Template(template) => self.render(template, item)?.into(),
            Argument::List(items) => {
                Value::Array(items.iter().map(|value| self.argument(value, item)).collect::<Result<_, _>>()?)
            }
            Argument::Object(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| Ok((name.clone(), self.argument(value, item)?)));
                Value::Object(fields.collect::<Result<_, String>>()?)
            }
        })
    }
}

fn since(time: Timestamp) -> Duration {
    Duration::try_from(Timestamp::now().duration_since(time)).unwrap_or_default()
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size).sum(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| size_of::<String>() + key.len() + size(value)).sum()
            }
            _ => 0,
        }
}
