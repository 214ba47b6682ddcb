//! JSON of a script. It becomes values directly: a tree in between could be many times as large as the text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::{
    error::{Checked, Fault},
    state::State,
    value::{Object, Value},
};

impl State {
    /// The value of a JSON document.
    pub(crate) fn decoded(&mut self, text: &str) -> Checked<Value> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Seed(self).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
        value.map_err(|error| Fault::new(format!("the string cannot be decoded: {error}")))
    }
}

struct Seed<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn custom<E: Error>(fault: Fault) -> E {
    E::custom(fault.0)
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON document")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.heap.text(value).map_err(custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let list = self.0.heap.list(Vec::new()).map_err(custom)?;
        while let Some(item) = items.next_element_seed(Seed(&mut *self.0))? {
            self.0.meter.work(1).map_err(custom)?;
            self.0.heap.changing_list(list, 1).map_err(custom)?.push(item);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let dict = self.0.heap.put(Object::Dict(Default::default())).map_err(custom)?;
        while let Some(key) = entries.next_key_seed(Seed(&mut *self.0))? {
            let value = entries.next_value_seed(Seed(&mut *self.0))?;
            self.0.set_entry(dict, key, value).map_err(custom)?;
        }
        Ok(dict)
    }
}
