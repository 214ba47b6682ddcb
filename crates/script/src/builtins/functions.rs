//! Functions.

use std::cmp::Ordering;

use super::{Arguments, Builtin, Outcome, Prelude};
use crate::{
    error::{Checked, Fault},
    index::range,
    operators::as_float,
    state::State,
    syntax::BinaryOp,
    value::{Object, Value},
};

impl State {
    /// Calls a builtin function.
    pub(crate) fn call_builtin(&mut self, builtin: Builtin, mut arguments: Arguments) -> Checked<Outcome> {
        let name = builtin.name();
        let value = match builtin {
            Builtin::CallTool => {
                if arguments.positional.is_empty() {
                    return Err(Fault::new("call_tool needs the name of a tool as its first argument"));
                }
                let tool = self.text_of(arguments.positional.remove(0), "the name of a tool")?;
                let Some(index) = self.tools.iter().position(|known| **known == *tool) else {
                    return Err(Fault::new(format!("there is no tool {tool:?}")));
                };
                return Ok(Outcome::Tool(u32::try_from(index).unwrap_or(u32::MAX), arguments));
            }
            Builtin::Parallel => {
                let functions = self.items(arguments.one(name, "functions")?)?;
                return Ok(Outcome::Parallel(functions));
            }
            Builtin::Sorted => return self.sorted(&arguments),
            Builtin::Max | Builtin::Min => return self.best(builtin, &arguments),
            Builtin::SortedByKeys | Builtin::BestByKeys => {
                let [items, keys, flag] = arguments.bound(name, ["items", "keys", "flag"], 3)?;
                let flag = flag.is_some_and(|flag| self.is_true(flag));
                let items = self.items(items.unwrap_or(Value::None))?;
                let keys = self.items(keys.unwrap_or(Value::None))?;
                let pairs = keys.into_iter().zip(items).collect();
                match builtin {
                    Builtin::SortedByKeys => self.sorted_pairs(pairs, flag)?,
                    _ => self.best_pair(pairs, flag)?,
                }
            }
            Builtin::Print => {
                let [separator] =
                    Arguments { positional: Vec::new(), named: arguments.named }.bound(name, ["sep"], 0)?;
                let separator = match separator {
                    Some(separator) => self.text_of(separator, "sep")?,
                    None => " ".into(),
                };
                let mut line = String::new();
                for (index, value) in arguments.positional.iter().enumerate() {
                    let shown = self.shown(*value)?;
                    if index > 0 {
                        self.push(&mut line, &separator)?;
                    }
                    self.push(&mut line, &shown)?;
                }
                self.logs.add(&line, self.limits.output);
                Value::None
            }
            Builtin::Fail => {
                let shown: Vec<String> =
                    arguments.positional.iter().map(|value| self.shown(*value)).collect::<Result<_, _>>()?;
                return Err(Fault::new(format!("fail: {}", shown.join(" "))));
            }
            Builtin::Dict => self.new_dict(arguments)?,
            Builtin::Zip => self.zipped(&arguments)?,
            Builtin::Range => {
                let [one, two, three] = arguments.bound(name, ["start", "stop", "step"], 1)?;
                let int = |value: Option<Value>, default: i128| {
                    value.map_or(Ok(default), |value| self.int_of(value, "an argument of range"))
                };
                let (start, stop) = match two {
                    Some(_) => (int(one, 0)?, int(two, 0)?),
                    None => (0, int(one, 0)?),
                };
                let range = range(start, stop, int(three, 1)?)?;
                self.heap.put(Object::Range(range))?
            }
            Builtin::Getattr => {
                let [of, attribute, default] = arguments.bound(name, ["x", "name", "default"], 2)?;
                let attribute = self.text_of(attribute.unwrap_or(Value::None), "the name of an attribute")?;
                let of = of.unwrap_or(Value::None);
                match (self.find_attribute(of, &attribute)?, default) {
                    (Some(found), _) | (None, Some(found)) => found,
                    (None, None) => self.attribute(of, &attribute)?,
                }
            }
            Builtin::Hasattr => {
                let [of, attribute] = arguments.bound(name, ["x", "name"], 2)?;
                let attribute = self.text_of(attribute.unwrap_or(Value::None), "the name of an attribute")?;
                Value::Bool(self.attributes(of.unwrap_or(Value::None)).contains(&&*attribute))
            }
            Builtin::Int => self.int(&arguments)?,
            Builtin::Enumerate => {
                let [items, start] = arguments.bound(name, ["items", "start"], 1)?;
                let items = self.items(items.unwrap_or(Value::None))?;
                let start = start.map_or(Ok(0), |start| self.int_of(start, "start"))?;
                let mut pairs = Vec::new();
                for (index, item) in (start..).zip(items) {
                    pairs.push(self.heap.tuple(vec![Value::Int(index), item])?);
                }
                self.heap.list(pairs)?
            }
            Builtin::Sum => {
                let [items, start] = arguments.bound(name, ["items", "start"], 1)?;
                let mut sum = start.unwrap_or(Value::Int(0));
                for item in self.items(items.unwrap_or(Value::None))? {
                    sum = self.binary(BinaryOp::Add, sum, item)?;
                }
                sum
            }
            Builtin::List | Builtin::Tuple | Builtin::Set => {
                let [items] = arguments.bound(name, ["items"], 0)?;
                let items = items.map_or(Ok(Vec::new()), |items| self.items(items))?;
                match builtin {
                    Builtin::List => self.heap.list(items)?,
                    Builtin::Tuple => self.heap.tuple(items)?,
                    _ => super::sets::set(self, items)?,
                }
            }
            Builtin::Str | Builtin::Bool | Builtin::Float => {
                let [value] = arguments.bound(name, ["x"], 0)?;
                self.converted(builtin, value)?
            }
            Builtin::Json => return Err(Fault::new("json is no function: use json.decode or json.encode")),
            _ => {
                let value = arguments.one(name, "x")?;
                self.of_one(builtin, value)?
            }
        };
        Ok(Outcome::Value(value))
    }

    fn converted(&mut self, builtin: Builtin, value: Option<Value>) -> Checked<Value> {
        match (builtin, value) {
            (Builtin::Str, None) => self.heap.text(""),
            (Builtin::Str, Some(value)) if self.heap.as_text(value).is_some() => Ok(value),
            (Builtin::Str, Some(value)) => {
                let text = self.shown(value)?;
                self.heap.text(&text)
            }
            (Builtin::Bool, value) => Ok(Value::Bool(value.is_some_and(|value| self.is_true(value)))),
            (_, None) => Ok(Value::Float(0.0)),
            (_, Some(Value::Bool(value))) => Ok(Value::Float(f64::from(u8::from(value)))),
            (_, Some(value)) => {
                if let Some(number) = as_float(value) {
                    return Ok(Value::Float(number));
                }
                let text = self.text_of(value, "the argument of float")?;
                let parsed = text.trim().parse().map_err(|_| Fault::new("the string is no number"))?;
                Ok(Value::Float(parsed))
            }
        }
    }

    /// Functions with one argument.
    fn of_one(&mut self, builtin: Builtin, value: Value) -> Checked<Value> {
        match builtin {
            Builtin::Abs => match value {
                Value::Int(value) => Ok(Value::Int(value.saturating_abs())),
                Value::Float(value) => Ok(Value::Float(value.abs())),
                _ => Err(Fault::new(format!("abs is not defined for {}", self.a_type(value)))),
            },
            Builtin::All | Builtin::Any => {
                let stops_at = builtin == Builtin::Any;
                let found = self.items(value)?.into_iter().any(|item| self.is_true(item) == stops_at);
                Ok(Value::Bool(found == stops_at))
            }
            Builtin::Dir => {
                let names: Vec<Value> = self
                    .attributes(value)
                    .iter()
                    .map(|name| self.heap.text(name))
                    .collect::<Result<_, _>>()?;
                self.heap.list(names)
            }
            Builtin::Len => {
                let bytes = self.heap.as_text(value).map_or(0, |text| text.len());
                self.meter.bytes(bytes)?;
                let length = self.length(value);
                let length =
                    length.ok_or_else(|| Fault::new(format!("{} has no length", self.a_type(value))))?;
                Ok(Value::Int(i128::try_from(length).unwrap_or(i128::MAX)))
            }
            Builtin::Repr => {
                let text = self.represented(value)?;
                self.heap.text(&text)
            }
            Builtin::Reversed => {
                let mut items = self.items(value)?;
                items.reverse();
                self.heap.list(items)
            }
            Builtin::Type => {
                let name = self.type_of(value);
                self.heap.text(name)
            }
            Builtin::JsonEncode => {
                let text = self.json(value, self.limits.memory)?;
                self.heap.text(&text)
            }
            Builtin::JsonDecode => {
                let text = self.text_of(value, "the argument of json.decode")?;
                self.meter.bytes(text.len())?;
                self.decoded(&text)
            }
            _ => Err(Fault::new(format!("{} cannot be called", builtin.name()))),
        }
    }

    fn int(&mut self, arguments: &Arguments) -> Checked<Value> {
        let [value, base] = arguments.bound("int", ["x", "base"], 0)?;
        if base.is_some() && value.is_none_or(|value| self.heap.as_text(value).is_none()) {
            return Err(Fault::new("base is for strings only"));
        }
        Ok(Value::Int(match value {
            None => 0,
            Some(Value::Int(value)) => value,
            Some(Value::Bool(value)) => i128::from(value),
            Some(Value::Float(value)) if value.is_finite() && value.abs() < 1e38 => value as i128,
            Some(Value::Float(_)) => return Err(Fault::new("the number is too large for an int")),
            Some(value) => {
                let text = self.text_of(value, "the argument of int")?;
                let base = base.map_or(Ok(10), |base| self.int_of(base, "base"))?;
                let base = u32::try_from(base).ok().filter(|base| *base == 0 || (2..=36).contains(base));
                let base = base.ok_or_else(|| Fault::new("base must be 0, or from 2 to 36"))?;
                int_of_text(text.trim(), base)
                    .ok_or_else(|| Fault::new(format!("{:?} is no int of base {base}", shortened(&text))))?
            }
        }))
    }

    fn new_dict(&mut self, arguments: Arguments) -> Checked<Value> {
        let dict = self.heap.put(Object::Dict(Default::default()))?;
        super::dicts::update(self, dict, arguments)?;
        Ok(dict)
    }

    fn zipped(&mut self, arguments: &Arguments) -> Checked<Value> {
        if !arguments.named.is_empty() {
            return Err(Fault::new("zip takes no named arguments"));
        }
        let mut lists = Vec::new();
        for list in &arguments.positional {
            let items = self.items(*list)?;
            self.heap.check_values(items.len())?;
            lists.push(items);
        }
        let length = lists.iter().map(Vec::len).min().unwrap_or(0);
        let mut zipped = Vec::new();
        for index in 0..length {
            self.meter.work(lists.len())?;
            let items = lists.iter().filter_map(|list| list.get(index)).copied().collect();
            zipped.push(self.heap.tuple(items)?);
        }
        self.heap.list(zipped)
    }

    fn sorted(&mut self, arguments: &Arguments) -> Checked<Outcome> {
        let [items, key, reverse] = arguments.bound("sorted", ["items", "key", "reverse"], 1)?;
        let reverse = reverse.unwrap_or(Value::Bool(false));
        let items = self.items(items.unwrap_or(Value::None))?;
        if let Some(key) = key.filter(|key| !matches!(key, Value::None)) {
            let items = self.heap.list(items)?;
            return Ok(Outcome::Prelude(Prelude::Sorted, vec![items, key, reverse]));
        }
        let is_reversed = self.is_true(reverse);
        let pairs = items.into_iter().map(|item| (item, item)).collect();
        self.sorted_pairs(pairs, is_reversed).map(Outcome::Value)
    }

    /// The second of each pair, in the order of the first. It is merged here, since a comparison can fail.
    fn sorted_pairs(&mut self, pairs: Vec<(Value, Value)>, is_reversed: bool) -> Checked<Value> {
        self.heap.check_values(pairs.len().saturating_mul(4))?;
        let mut runs = pairs;
        let mut width = 1;
        while width < runs.len() {
            let mut merged = Vec::with_capacity(runs.len());
            for chunk in runs.chunks(width * 2) {
                let (left, right) = chunk.split_at(width.min(chunk.len()));
                let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
                while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
                    let order = self.compare(one.0, other.0)?;
                    let takes_other =
                        if is_reversed { Ordering::is_lt(order) } else { Ordering::is_gt(order) };
                    merged.extend(if takes_other { right.next() } else { left.next() }.copied());
                }
                merged.extend(left.chain(right).copied());
            }
            self.meter.work(merged.len())?;
            runs = merged;
            width *= 2;
        }
        self.heap.list(runs.into_iter().map(|(_, item)| item).collect())
    }

    fn best(&mut self, builtin: Builtin, arguments: &Arguments) -> Checked<Outcome> {
        let named = Arguments { positional: Vec::new(), named: arguments.named.clone() };
        let [key] = named.bound(builtin.name(), ["key"], 0)?;
        let items = match arguments.positional[..] {
            [items] => self.items(items)?,
            _ => arguments.positional.clone(),
        };
        let is_largest = builtin == Builtin::Max;
        if let Some(key) = key.filter(|key| !matches!(key, Value::None)) {
            let items = self.heap.list(items)?;
            return Ok(Outcome::Prelude(Prelude::Best, vec![items, key, Value::Bool(is_largest)]));
        }
        let pairs = items.into_iter().map(|item| (item, item)).collect();
        self.best_pair(pairs, is_largest).map(Outcome::Value)
    }

    fn best_pair(&mut self, pairs: Vec<(Value, Value)>, is_largest: bool) -> Checked<Value> {
        let mut pairs = pairs.into_iter();
        let mut best = pairs.next().ok_or_else(|| Fault::new("there are no items to choose from"))?;
        for pair in pairs {
            let order = self.compare(pair.0, best.0)?;
            if if is_largest { order.is_gt() } else { order.is_lt() } {
                best = pair;
            }
        }
        Ok(best.1)
    }
}

/// The number, with a sign and a prefix that its base allows. Base 0 is that of the prefix.
fn int_of_text(text: &str, base: u32) -> Option<i128> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(|(prefix, of)| {
        let start = unsigned.get(..2).filter(|start| start.eq_ignore_ascii_case(prefix))?;
        (base == 0 || base == of).then(|| (&unsigned[start.len()..], of))
    });
    let (digits, base) = match (prefixed, base) {
        (Some(prefixed), _) => prefixed,
        // One that starts with 0 looks like an octal number.
        (None, 0) if unsigned.starts_with('0') && unsigned.contains(|digit| digit != '0') => return None,
        (None, 0) => (unsigned, 10),
        (None, base) => (unsigned, base),
    };
    let sign = if text.starts_with('-') { "-" } else { "" };
    let is_number = digits.starts_with(|first: char| first.is_digit(base));
    i128::from_str_radix(&format!("{sign}{digits}"), base).ok().filter(|_| is_number)
}

/// The start of a text, for messages.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}
