//! Indexes and slices.

use crate::{
    builtins::shortened,
    error::{Checked, Fault},
    state::State,
    value::{Object, Range, Value},
};

impl State {
    pub(crate) fn index(&mut self, of: Value, index: Value) -> Checked<Value> {
        if self.heap.as_dict(of).is_some() {
            let key = self.key(index)?;
            let found =
                self.heap.as_dict(of).and_then(|dict| dict.entries.get(&key)).map(|(_, value)| *value);
            return match found {
                Some(value) => Ok(value),
                None => Err(self.missing_key(of, index)),
            };
        }
        let length = match self.heap.object(of) {
            Some(Object::Text(text)) => {
                let bytes = text.len();
                self.meter.bytes(bytes)?;
                self.length(of).unwrap_or_default()
            }
            Some(Object::List(_) | Object::Tuple(_) | Object::Range(_)) => {
                self.length(of).unwrap_or_default()
            }
            _ => return Err(Fault::new(format!("{} has no index", self.a_type(of)))),
        };
        let place = self.place(index, length)?;
        if let Some(text) = self.heap.as_text(of) {
            let found: String = text.chars().nth(place).into_iter().collect();
            return self.heap.text(&found);
        }
        self.item(of, place).ok_or_else(|| Fault::new("the index is out of range"))
    }

    /// The message names some of the keys that are there.
    fn missing_key(&mut self, of: Value, key: Value) -> Fault {
        const SHOWN: usize = 10;
        let keys: Vec<Value> = (0..SHOWN).filter_map(|index| self.item(of, index)).collect();
        let mut shown = Vec::new();
        for key in keys {
            shown.extend(self.represented(key).ok().map(|key| shortened(&key)));
        }
        let key = shortened(&self.represented(key).unwrap_or_default());
        let more = if self.length(of) > Some(SHOWN) { ", ..." } else { "" };
        Fault::new(format!("the dict has no key {key}: it has [{}{more}]", shown.join(", ")))
    }

    fn place(&self, index: Value, length: usize) -> Checked<usize> {
        let index = self.int_of(index, "an index")?;
        let all = i128::try_from(length).unwrap_or(i128::MAX);
        let place = if index < 0 { index.saturating_add(all) } else { index };
        match usize::try_from(place) {
            Ok(place) if place < length => Ok(place),
            _ => Err(Fault::new(format!("the index {index} is out of range: there are {length} items"))),
        }
    }

    pub(crate) fn set_index(&mut self, of: Value, index: Value, value: Value) -> Checked<()> {
        match self.heap.object(of) {
            Some(Object::Dict(_)) => self.set_entry(of, index, value),
            Some(Object::List(list)) => {
                let length = list.items.len();
                let place = self.place(index, length)?;
                if let Some(item) = self.heap.changing_list(of, 0)?.get_mut(place) {
                    *item = value;
                }
                Ok(())
            }
            _ => Err(Fault::new(format!("items of {} cannot be assigned to", self.a_type(of)))),
        }
    }

    pub(crate) fn slice(&mut self, of: Value, parts: [Value; 3]) -> Checked<Value> {
        let length = match self.heap.object(of) {
            Some(Object::Text(text)) => {
                let bytes = text.len();
                self.meter.bytes(bytes)?;
                self.length(of)
            }
            Some(Object::List(_) | Object::Tuple(_) | Object::Range(_)) => self.length(of),
            _ => None,
        };
        let Some(length) = length else {
            return Err(Fault::new(format!("{} cannot be sliced", self.a_type(of))));
        };
        let [from, to, step] = parts;
        let step = match step {
            Value::None => 1,
            step => self.int_of(step, "the step of a slice")?,
        };
        if step == 0 {
            return Err(Fault::new("the step of a slice must not be 0"));
        }
        let all = i128::try_from(length).unwrap_or(i128::MAX);
        let bound = |state: &Self, part: Value, default: i128| -> Checked<i128> {
            let Value::None = part else {
                let part = state.int_of(part, "a bound of a slice")?;
                let part = if part < 0 { part.saturating_add(all) } else { part };
                let lowest = if step > 0 { 0 } else { -1 };
                return Ok(part.clamp(lowest, if step > 0 { all } else { all - 1 }));
            };
            Ok(default)
        };
        let from = bound(self, from, if step > 0 { 0 } else { all - 1 })?;
        let to = bound(self, to, if step > 0 { all } else { -1 })?;
        let places = range(from, to, step)?;
        self.picked(of, places)
    }

    fn picked(&mut self, of: Value, places: Range) -> Checked<Value> {
        let at = |index: usize| match places.item(index) {
            Value::Int(place) => usize::try_from(place).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        if let Some(text) = self.heap.as_text(of).cloned() {
            self.heap.check(text.len() * 5)?;
            let picked: String = if places.step == 1 {
                text.chars().skip(at(0)).take(places.length).collect()
            } else {
                let all: Vec<char> = text.chars().collect();
                (0..places.length).filter_map(|index| all.get(at(index))).collect()
            };
            return self.heap.text(&picked);
        }
        if let Some(Object::Range(range)) = self.heap.object(of) {
            let Value::Int(start) = range.item(at(0).min(range.length)) else { return Ok(of) };
            let step =
                range.step.checked_mul(places.step).ok_or_else(|| Fault::new("the step is too large"))?;
            let stop = places.stop.checked_mul(range.step).and_then(|offset| range.start.checked_add(offset));
            let stop = stop.ok_or_else(|| Fault::new("the range is too large"))?;
            return self.heap.put(Object::Range(Range { start, stop, step, length: places.length }));
        }
        self.meter.work(places.length)?;
        self.heap.check_values(places.length)?;
        let items: Vec<Value> = (0..places.length).filter_map(|index| self.item(of, at(index))).collect();
        match self.heap.object(of) {
            Some(Object::Tuple(_)) => self.heap.tuple(items),
            _ => self.heap.list(items),
        }
    }
}

/// The integers from one to another.
pub(crate) fn range(start: i128, stop: i128, step: i128) -> Checked<Range> {
    let too_large = || Fault::new("the range is too large");
    if step == 0 {
        return Err(Fault::new("the step of a range must not be 0"));
    }
    let distance = if step > 0 { stop.checked_sub(start) } else { start.checked_sub(stop) };
    let distance = distance.ok_or_else(too_large)?;
    let step_size = step.checked_abs().ok_or_else(too_large)?;
    let length = if distance <= 0 { 0 } else { (distance - 1) / step_size + 1 };
    Ok(Range { start, stop, step, length: usize::try_from(length).map_err(|_| too_large())? })
}
