//! A message that was changed as a value, in its original bytes.

use serde_json::Value;

use crate::{
    Fault,
    json::{Raw, Scanner},
};

/// The message with the changes from `old`, its value, to `new`. What is unchanged stays as it was spelled: the
/// digits of a number, the escapes of a text, the order of keys.
pub fn rewritten(message: &[u8], old: &Value, new: &Value) -> Result<Vec<u8>, Fault> {
    let raw = Scanner::new(message, u32::MAX)?.value()?;
    let mut sent = String::with_capacity(message.len());
    write(raw, old, new, &mut sent)?;
    Ok(sent.into_bytes())
}

fn write(raw: Raw<'_>, old: &Value, new: &Value, sent: &mut String) -> Result<(), Fault> {
    if old == new {
        sent.push_str(raw.as_str());
        return Ok(());
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut place = Place::open(sent, '{');
            Scanner::within(raw).object(|scanner, key| {
                let value = scanner.value()?;
                let name = key.decoded();
                if let (Some(old), Some(new)) = (old.get(&*name), new.get(&*name)) {
                    let sent = place.next();
                    sent.push_str(key.raw().as_str());
                    sent.push(':');
                    write(value, old, new, sent)?;
                }
                Ok(())
            })?;
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                let sent = place.next();
                sent.push_str(&Value::from(name.as_str()).to_string());
                sent.push(':');
                sent.push_str(&value.to_string());
            }
            place.close('}');
        }
        (Value::Array(old), Value::Array(new)) => {
            let mut place = Place::open(sent, '[');
            let mut index = 0;
            Scanner::within(raw).array(|scanner| {
                let value = scanner.value()?;
                if let (Some(old), Some(new)) = (old.get(index), new.get(index)) {
                    write(value, old, new, place.next())?;
                }
                index += 1;
                Ok(())
            })?;
            for value in new.iter().skip(old.len()) {
                place.next().push_str(&value.to_string());
            }
            place.close(']');
        }
        _ => sent.push_str(&new.to_string()),
    }
    Ok(())
}

/// The position in an object or array: every member but the first has a comma before it.
struct Place<'a> {
    sent: &'a mut String,
    first: bool,
}

impl<'a> Place<'a> {
    fn open(sent: &'a mut String, bracket: char) -> Self {
        sent.push(bracket);
        Self { sent, first: true }
    }

    fn next(&mut self) -> &mut String {
        if !std::mem::take(&mut self.first) {
            self.sent.push(',');
        }
        self.sent
    }

    fn close(self, bracket: char) {
        self.sent.push(bracket);
    }
}
