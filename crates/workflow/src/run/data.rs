//! The data of templates.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use serde_json::{Map, Value, json};
use skep_gocompat::template::Template;

use super::step::Ended;
use crate::compiled::Argument;

/// How many bytes the results of all steps may have.
const RESULTS: usize = 64 << 20;

/// What templates refer to. All steps of one run share it.
pub(super) struct Data {
    value: Mutex<Value>,
    /// How many bytes results may still have.
    room: AtomicUsize,
    started: Instant,
}

/// The item that a step runs for: its name in templates, its position, and itself.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) index: usize,
    pub(super) value: &'a Value,
}

impl Data {
    pub(super) fn new(parameters: Map<String, Value>) -> Self {
        let value = json!({
            "params": parameters,
            "steps": {},
            "vars": {},
            "workflow": {
                "id": uuid::Uuid::new_v4().to_string(),
                "step_count": 0,
                "status": "running",
                "start_time": jiff::Timestamp::now().to_string(),
            },
        });
        Self { value: Mutex::new(value), room: AtomicUsize::new(RESULTS), started: Instant::now() }
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

/// About how many bytes a value has.
fn size(value: &Value) -> usize {
    8 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value)).sum(),
        _ => 0,
    }
}
