//! Where the values of a script are: counted, and collected when nothing uses them any more.

use std::sync::Arc;

use crate::{
    error::{Checked, Fault},
    limits::Lease,
    value::{Dict, Id, Key, List, Object, VALUE, Value},
};

/// The objects of a script.
pub(crate) struct Heap {
    objects: Vec<Option<Object>>,
    free: Vec<u32>,
    /// About how many bytes they take.
    used: usize,
    /// How many bytes are taken by what is no object.
    reserved: usize,
    limit: usize,
    lease: Lease,
    /// At how many bytes it is collected next.
    threshold: usize,
}

impl Heap {
    pub(crate) fn new(limit: usize, lease: Lease) -> Self {
        Self {
            objects: Vec::new(),
            free: Vec::new(),
            used: 0,
            reserved: 0,
            limit,
            lease,
            threshold: limit / 4,
        }
    }

    /// Checks that there is room for this many bytes.
    pub(crate) fn check(&mut self, bytes: usize) -> Checked<()> {
        let total = self.used.saturating_add(self.reserved).saturating_add(bytes);
        if total > self.limit {
            return Err(Fault::new(format!(
                "the script uses too much memory: its values may take {} MiB",
                self.limit >> 20
            )));
        }
        self.lease.grow_to(total)
    }

    /// Checks that there is room for this many values.
    pub(crate) fn check_values(&mut self, count: usize) -> Checked<()> {
        self.check(count.saturating_mul(VALUE))
    }

    /// Takes room for what is no object.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Checked<()> {
        self.check(bytes)?;
        self.reserved += bytes;
        Ok(())
    }

    /// Returns it.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    pub(crate) fn put(&mut self, object: Object) -> Checked<Value> {
        let size = object.size();
        self.check(size)?;
        self.used += size;
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.objects.push(None);
                u32::try_from(self.objects.len() - 1)
                    .map_err(|_| Fault::new("the script has too many values"))?
            }
        };
        if let Some(slot) = self.objects.get_mut(index as usize) {
            *slot = Some(object);
        }
        Ok(Value::Object(Id(index)))
    }

    pub(crate) fn text(&mut self, text: &str) -> Checked<Value> {
        self.check(text.len())?;
        self.put(Object::Text(text.into()))
    }

    pub(crate) fn shared_text(&mut self, text: &Arc<str>) -> Checked<Value> {
        self.put(Object::Text(text.clone()))
    }

    pub(crate) fn list(&mut self, items: Vec<Value>) -> Checked<Value> {
        self.put(Object::List(List { items, loops: 0 }))
    }

    pub(crate) fn tuple(&mut self, items: Vec<Value>) -> Checked<Value> {
        self.put(Object::Tuple(items.into()))
    }

    pub(crate) fn object(&self, value: Value) -> Option<&Object> {
        let Value::Object(id) = value else { return None };
        self.objects.get(id.0 as usize)?.as_ref()
    }

    fn object_mut(&mut self, value: Value) -> Option<&mut Object> {
        let Value::Object(id) = value else { return None };
        self.objects.get_mut(id.0 as usize)?.as_mut()
    }

    /// The text of a string.
    pub(crate) fn as_text(&self, value: Value) -> Option<&Arc<str>> {
        match self.object(value)? {
            Object::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_dict(&self, value: Value) -> Option<&Dict> {
        match self.object(value)? {
            Object::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub(crate) fn as_items(&self, value: Value) -> Option<&[Value]> {
        match self.object(value)? {
            Object::List(list) => Some(&list.items),
            Object::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// A list that is about to change, and to grow by this many items.
    pub(crate) fn changing_list(&mut self, value: Value, more: usize) -> Checked<&mut Vec<Value>> {
        let bytes = more.saturating_mul(VALUE);
        self.check(bytes)?;
        self.used += bytes;
        match self.object_mut(value) {
            Some(Object::List(list)) if list.loops == 0 => Ok(&mut list.items),
            Some(Object::List(_)) => {
                Err(Fault::new("a list cannot be changed while a loop iterates over it"))
            }
            _ => Err(Fault::new("expected a list")),
        }
    }

    /// A dict or set that is about to change, and to grow by a key.
    pub(crate) fn changing_dict(&mut self, value: Value, more: Option<&Key>) -> Checked<&mut Dict> {
        if let Some(key) = more {
            let bytes = crate::value::ENTRY + key.size();
            self.check(bytes)?;
            self.used += bytes;
        }
        match self.object_mut(value) {
            Some(Object::Dict(dict) | Object::Set(dict)) if dict.loops == 0 => Ok(dict),
            Some(Object::Dict(_)) => {
                Err(Fault::new("a dict cannot be changed while a loop iterates over it"))
            }
            Some(Object::Set(_)) => Err(Fault::new("a set cannot be changed while a loop iterates over it")),
            _ => Err(Fault::new("expected a dict")),
        }
    }

    /// Sets what is in a cell.
    pub(crate) fn set_cell(&mut self, cell: Value, value: Value) {
        if let Some(Object::Cell(current)) = self.object_mut(cell) {
            *current = value;
        }
    }

    /// Counts a loop that iterates over something, or that no longer does.
    pub(crate) fn count_loop(&mut self, value: Value, more: bool) {
        if let Some(
            Object::List(List { loops, .. })
            | Object::Dict(Dict { loops, .. })
            | Object::Set(Dict { loops, .. }),
        ) = self.object_mut(value)
        {
            *loops = if more { loops.saturating_add(1) } else { loops.saturating_sub(1) };
        }
    }

    /// Whether so much has been put that it should be collected.
    pub(crate) fn should_collect(&self) -> bool {
        self.used > self.threshold
    }

    /// Removes what cannot be reached from these values.
    pub(crate) fn collect(&mut self, roots: impl Iterator<Item = Value>) {
        let mut is_reached = vec![false; self.objects.len()];
        let mut open: Vec<Value> = Vec::new();
        let mut reach = |value: Value, open: &mut Vec<Value>| {
            if let Value::Object(id) = value
                && let Some(mark) = is_reached.get_mut(id.0 as usize)
                && !std::mem::replace(mark, true)
            {
                open.push(value);
            }
        };
        roots.for_each(|root| reach(root, &mut open));
        while let Some(value) = open.pop() {
            if let Some(object) = self.object(value) {
                object.each_part(|part| reach(part, &mut open));
            }
        }
        self.used = 0;
        for (index, slot) in self.objects.iter_mut().enumerate() {
            match slot {
                Some(object) if is_reached[index] => self.used += object.size(),
                Some(_) => {
                    *slot = None;
                    self.free.extend(u32::try_from(index));
                }
                None => {}
            }
        }
        self.threshold =
            (self.used + self.limit / 4).min(self.limit / 4 * 3).max(self.used + self.limit / 16);
    }
}
