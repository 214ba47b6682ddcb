//! The arguments of a call.

use std::sync::Arc;

use crate::{
    error::{Checked, Fault},
    value::Value,
};

/// The arguments of a call.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(Arc<str>, Value)>,
}

impl Arguments {
    /// The arguments of a function with these parameters, of which the first must be given.
    pub(crate) fn bound<const N: usize>(
        &self,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> Checked<[Option<Value>; N]> {
        if self.positional.len() > N {
            let given = self.positional.len();
            return Err(Fault::new(format!("{function} takes at most {N} arguments, and {given} are given")));
        }
        let mut bound = [None; N];
        for (slot, value) in bound.iter_mut().zip(&self.positional) {
            *slot = Some(*value);
        }
        for (name, value) in &self.named {
            let Some(index) = names.iter().position(|known| *known == &**name) else {
                return Err(Fault::new(format!("{function} has no parameter {name}")));
            };
            if bound[index].replace(*value).is_some() {
                return Err(Fault::new(format!("{function} has two arguments for {name}")));
            }
        }
        match bound.iter().take(required).position(Option::is_none) {
            Some(missing) => Err(Fault::new(format!("{function} needs an argument for {}", names[missing]))),
            None => Ok(bound),
        }
    }

    /// The only argument.
    pub(crate) fn one(&self, function: &str, name: &str) -> Checked<Value> {
        let [value] = self.bound(function, [name], 1)?;
        Ok(value.unwrap_or(Value::None))
    }

    /// Checks that there are none.
    pub(crate) fn none(&self, function: &str) -> Checked<()> {
        self.bound(function, [], 0).map(|[]| ())
    }
}
