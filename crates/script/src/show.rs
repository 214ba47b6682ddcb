//! Values as text: for people, and as JSON.

use serde_json::Value as Json;

use crate::{
    deep::{DEPTH, too_deep},
    error::{Checked, Fault},
    state::State,
    value::{Id, Object, Range, Value},
};

impl State {
    /// What `str` returns.
    pub(crate) fn shown(&mut self, value: Value) -> Checked<String> {
        if let Some(text) = self.heap.as_text(value).cloned() {
            self.meter.bytes(text.len())?;
            self.heap.check(text.len())?;
            return Ok(text.to_string());
        }
        self.represented(value)
    }

    /// What `repr` returns.
    pub(crate) fn represented(&mut self, value: Value) -> Checked<String> {
        let mut text = String::new();
        self.write(value, &mut text, &mut Vec::new())?;
        Ok(text)
    }

    /// Writes a value that is within these.
    fn write(&mut self, value: Value, text: &mut String, within: &mut Vec<Id>) -> Checked<()> {
        if within.len() >= DEPTH {
            return Err(too_deep());
        }
        let plain = match value {
            Value::Unbound | Value::None => "None".to_owned(),
            Value::Bool(value) => if value { "True" } else { "False" }.to_owned(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => float_text(value),
            Value::Builtin(builtin) => format!("<built-in function {}>", builtin.name()),
            Value::Tool(index) => {
                format!("<tool {}>", self.tools.get(index as usize).map_or("", |name| name))
            }
            Value::Object(place) if within.contains(&place) => {
                // It contains itself.
                let is_dict = self.heap.as_dict(value).is_some();
                if is_dict { "{...}" } else { "[...]" }.to_owned()
            }
            Value::Object(place) => {
                within.push(place);
                self.write_object(value, text, within)?;
                within.pop();
                return Ok(());
            }
        };
        self.push(text, &plain)
    }

    fn write_object(&mut self, value: Value, text: &mut String, within: &mut Vec<Id>) -> Checked<()> {
        let (open, close) = match self.heap.object(value) {
            Some(Object::Text(inner)) => {
                let inner = inner.clone();
                self.meter.bytes(inner.len())?;
                self.heap.check(inner.len() * 4)?;
                return self.push(text, &quoted(&inner));
            }
            Some(Object::Range(range)) => {
                let Range { start, stop, step, .. } = *range;
                let shown = match step {
                    1 => format!("range({start}, {stop})"),
                    _ => format!("range({start}, {stop}, {step})"),
                };
                return self.push(text, &shown);
            }
            Some(Object::Function(function)) => {
                let shown = format!("<function {}>", function.code.name);
                return self.push(text, &shown);
            }
            Some(Object::Method(_, name)) => {
                let shown = format!("<built-in method {name}>");
                return self.push(text, &shown);
            }
            Some(Object::Dict(_)) => return self.write_dict(value, text, within),
            Some(Object::List(_)) => ("[", "]"),
            Some(Object::Tuple(items)) => ("(", if items.len() == 1 { ",)" } else { ")" }),
            Some(Object::Set(_)) => ("set([", "])"),
            Some(Object::Cell(_)) | None => return Ok(()),
        };
        self.push(text, open)?;
        let mut index = 0;
        while let Some(item) = self.item(value, index) {
            if index > 0 {
                self.push(text, ", ")?;
            }
            self.write(item, text, within)?;
            index += 1;
        }
        self.push(text, close)
    }

    fn write_dict(&mut self, value: Value, text: &mut String, within: &mut Vec<Id>) -> Checked<()> {
        self.push(text, "{")?;
        let mut index = 0;
        while let Some((key, inner)) = self.entry(value, index) {
            if index > 0 {
                self.push(text, ", ")?;
            }
            self.write(key, text, within)?;
            self.push(text, ": ")?;
            self.write(inner, text, within)?;
            index += 1;
        }
        self.push(text, "}")
    }

    pub(crate) fn entry(&self, of: Value, index: usize) -> Option<(Value, Value)> {
        self.heap.as_dict(of)?.entries.get_index(index).map(|(_, entry)| *entry)
    }

    /// A value as JSON of at most this many bytes.
    pub(crate) fn json(&mut self, value: Value, limit: usize) -> Checked<String> {
        let mut text = String::new();
        self.write_json(value, &mut text, limit, DEPTH)?;
        Ok(text)
    }

    fn add_json(&mut self, text: &mut String, more: &str, limit: usize) -> Checked<()> {
        self.check_json(text.len() + more.len(), limit)?;
        self.push(text, more)
    }

    fn check_json(&self, size: usize, limit: usize) -> Checked<()> {
        if size <= limit {
            return Ok(());
        }
        Err(Fault::new(format!("the value is larger than {} KiB as JSON: use less of it", limit >> 10)))
    }

    fn write_json(&mut self, value: Value, text: &mut String, limit: usize, depth: usize) -> Checked<()> {
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        let plain = match value {
            Value::Unbound | Value::None => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) if i64::try_from(value).is_ok() || u64::try_from(value).is_ok() => {
                value.to_string()
            }
            Value::Int(value) => return Err(Fault::new(format!("{value} is too large for JSON: use str"))),
            Value::Float(value) => match serde_json::Number::from_f64(value) {
                Some(number) => number.to_string(),
                None => return Err(Fault::new(format!("{} cannot be JSON: use str", float_text(value)))),
            },
            _ => match self.heap.object(value) {
                Some(Object::Text(inner)) => {
                    let inner = inner.clone();
                    self.meter.bytes(inner.len())?;
                    let size = quoted_size(&inner);
                    self.check_json(text.len() + size, limit)?;
                    self.heap.check(size)?;
                    serde_json::to_string(&*inner).map_err(|error| Fault::new(error.to_string()))?
                }
                Some(
                    Object::Dict(_) | Object::List(_) | Object::Tuple(_) | Object::Set(_) | Object::Range(_),
                ) => return self.write_json_items(value, text, limit, depth),
                _ => {
                    return Err(Fault::new(format!("{} cannot be JSON: call it", self.a_type(value))));
                }
            },
        };
        self.add_json(text, &plain, limit)
    }

    /// An object for a dict, and an array for every other collection.
    fn write_json_items(
        &mut self,
        value: Value,
        text: &mut String,
        limit: usize,
        depth: usize,
    ) -> Checked<()> {
        let (open, close) = if self.heap.as_dict(value).is_some() { ("{", "}") } else { ("[", "]") };
        self.add_json(text, open, limit)?;
        for index in 0.. {
            let entry = self.entry(value, index);
            let Some(item) = entry.map(|(_, inner)| inner).or_else(|| self.item(value, index)) else { break };
            if index > 0 {
                self.add_json(text, ",", limit)?;
            }
            if let Some((key, _)) = entry {
                let key = self.json_key(key)?;
                self.add_json(text, &key, limit)?;
                self.add_json(text, ":", limit)?;
            }
            self.write_json(item, text, limit, depth)?;
        }
        self.add_json(text, close, limit)
    }

    fn json_key(&mut self, key: Value) -> Checked<String> {
        if matches!(key, Value::Object(_)) && self.heap.as_text(key).is_none() {
            return Err(Fault::new(format!("{} cannot be a key in JSON", self.a_type(key))));
        }
        Ok(Json::from(self.shown(key)?).to_string())
    }

    /// The value of a JSON document.
    pub(crate) fn value_of(&mut self, json: &Json) -> Checked<Value> {
        self.meter.work(1)?;
        Ok(match json {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i128(), number.as_f64()) {
                (Some(int), _) => Value::Int(int),
                (None, Some(float)) => Value::Float(float),
                (None, None) => return Err(Fault::new("a number is too large")),
            },
            Json::String(text) => {
                self.meter.bytes(text.len())?;
                self.heap.text(text)?
            }
            Json::Array(items) => {
                self.heap.check_values(items.len())?;
                let items: Vec<Value> =
                    items.iter().map(|item| self.value_of(item)).collect::<Result<_, _>>()?;
                self.heap.list(items)?
            }
            Json::Object(fields) => {
                let dict = self.heap.put(Object::Dict(Default::default()))?;
                for (name, json) in fields {
                    let key = self.heap.text(name)?;
                    let value = self.value_of(json)?;
                    self.set_entry(dict, key, value)?;
                }
                dict
            }
        })
    }

    /// Sets an entry of a dict.
    pub(crate) fn set_entry(&mut self, dict: Value, key: Value, value: Value) -> Checked<()> {
        let hashed = self.key(key)?;
        let is_new = match self.heap.object(dict) {
            Some(Object::Dict(dict) | Object::Set(dict)) => !dict.entries.contains_key(&hashed),
            _ => true,
        };
        let dict = self.heap.changing_dict(dict, is_new.then_some(&hashed))?;
        match dict.entries.get_mut(&hashed) {
            Some((_, current)) => *current = value,
            None => drop(dict.entries.insert(hashed, (key, value))),
        }
        Ok(())
    }
}

/// A number that is not whole is shown so that it is read as the same.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+inf".into() } else { "-inf".into() };
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// How many bytes a text has as JSON.
fn quoted_size(text: &str) -> usize {
    let size = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(size).sum::<usize>() + 2
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for next in text.chars() {
        match next {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            next if next.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(next))),
            next => quoted.push(next),
        }
    }
    quoted.push('"');
    quoted
}
