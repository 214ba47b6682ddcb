//! Operators.

use std::cmp::Ordering;

use crate::{
    builtins,
    error::{Checked, Fault},
    state::State,
    syntax::{BinaryOp, UnaryOp},
    value::{Object, VALUE, Value},
};

impl State {
    pub(crate) fn unary(&mut self, op: UnaryOp, operand: Value) -> Checked<Value> {
        let name = match (op, operand) {
            (UnaryOp::Not, operand) => return Ok(Value::Bool(!self.is_true(operand))),
            (UnaryOp::Minus, Value::Int(value)) => return int(value.checked_neg()),
            (UnaryOp::Minus, Value::Float(value)) => return Ok(Value::Float(-value)),
            (UnaryOp::Plus, Value::Int(_) | Value::Float(_)) => return Ok(operand),
            (UnaryOp::Invert, Value::Int(value)) => return Ok(Value::Int(!value)),
            (UnaryOp::Minus, _) => "-",
            (UnaryOp::Plus, _) => "+",
            (UnaryOp::Invert, _) => "~",
        };
        Err(Fault::new(format!("{name} is not defined for {}", self.a_type(operand))))
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, left: Value, right: Value) -> Checked<Value> {
        let comparison = |state: &mut Self, is: fn(Ordering) -> bool| {
            state.compare(left, right).map(|order| Value::Bool(is(order)))
        };
        match op {
            BinaryOp::Equal => self.is_equal(left, right).map(Value::Bool),
            BinaryOp::NotEqual => self.is_equal(left, right).map(|is_equal| Value::Bool(!is_equal)),
            BinaryOp::Less => comparison(self, Ordering::is_lt),
            BinaryOp::LessOrEqual => comparison(self, Ordering::is_le),
            BinaryOp::Greater => comparison(self, Ordering::is_gt),
            BinaryOp::GreaterOrEqual => comparison(self, Ordering::is_ge),
            BinaryOp::In => self.contains(right, left).map(Value::Bool),
            BinaryOp::NotIn => self.contains(right, left).map(|is_in| Value::Bool(!is_in)),
            _ => match (left, right) {
                (Value::Int(left), Value::Int(right)) => ints(op, left, right),
                (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
                    floats(op, left, right).ok_or_else(|| self.undefined(op, left, right))?
                }
                _ => self.objects(op, left, right),
            },
        }
    }

    fn undefined(&self, op: BinaryOp, left: Value, right: Value) -> Fault {
        let hint = match (op, self.type_of(left), self.type_of(right)) {
            (BinaryOp::Add, "string", _) | (BinaryOp::Add, _, "string") => ": use str",
            _ => "",
        };
        let (left, right) = (self.a_type(left), self.a_type(right));
        Fault::new(format!("{} is not defined for {left} and {right}{hint}", op.as_str()))
    }

    fn objects(&mut self, op: BinaryOp, left: Value, right: Value) -> Checked<Value> {
        if let (BinaryOp::Multiply, Value::Int(times)) = (op, left) {
            return self.repeated(right, times).ok_or_else(|| self.undefined(op, left, right))?;
        }
        if let (BinaryOp::Multiply, Value::Int(times)) = (op, right) {
            return self.repeated(left, times).ok_or_else(|| self.undefined(op, left, right))?;
        }
        match (op, self.heap.object(left), self.heap.object(right)) {
            (BinaryOp::Modulo, Some(Object::Text(format)), _) => {
                let format = format.clone();
                let text = builtins::percent(self, &format, right)?;
                self.heap.text(&text)
            }
            (BinaryOp::Add, Some(Object::Text(left)), Some(Object::Text(right))) => {
                let (left, right) = (left.clone(), right.clone());
                self.meter.bytes(left.len() + right.len())?;
                self.heap.check(left.len() + right.len())?;
                self.heap.text(&[&*left, &*right].concat())
            }
            (BinaryOp::Add, Some(Object::List(_)), Some(Object::List(_))) => {
                let all = self.joined(left, right)?;
                self.heap.list(all)
            }
            (BinaryOp::Add, Some(Object::Tuple(_)), Some(Object::Tuple(_))) => {
                let all = self.joined(left, right)?;
                self.heap.tuple(all)
            }
            (BinaryOp::Or, Some(Object::Dict(_)), Some(Object::Dict(_))) => {
                let union = self.heap.put(Object::Dict(Default::default()))?;
                self.add_entries(union, left)?;
                self.add_entries(union, right)?;
                Ok(union)
            }
            (
                BinaryOp::Or | BinaryOp::And | BinaryOp::Subtract | BinaryOp::Xor,
                Some(Object::Set(_)),
                Some(Object::Set(_)),
            ) => builtins::combined(self, op, left, right),
            _ => Err(self.undefined(op, left, right)),
        }
    }

    fn joined(&mut self, left: Value, right: Value) -> Checked<Vec<Value>> {
        let mut all = self.items(left)?;
        let more = self.items(right)?;
        self.heap.check_values(all.len() + more.len())?;
        all.extend(more);
        Ok(all)
    }

    /// Adds all entries of one dict to another.
    pub(crate) fn add_entries(&mut self, to: Value, from: Value) -> Checked<()> {
        for index in 0..self.length(from).unwrap_or_default() {
            self.meter.work(1)?;
            if let Some((key, value)) = self.entry(from, index) {
                self.set_entry(to, key, value)?;
            }
        }
        Ok(())
    }

    /// A string or list several times, if it is one.
    fn repeated(&mut self, value: Value, times: i128) -> Option<Checked<Value>> {
        let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
        match self.heap.object(value)? {
            Object::Text(text) => {
                let text = text.clone();
                let size = text.len().saturating_mul(times);
                let room = self.heap.check(size).and_then(|()| self.meter.bytes(size));
                Some(
                    room.and_then(|()| self.heap.text(&text.repeat(if text.is_empty() { 0 } else { times }))),
                )
            }
            Object::List(_) | Object::Tuple(_) => {
                let is_list = matches!(self.heap.object(value), Some(Object::List(_)));
                let length = self.length(value).unwrap_or_default().saturating_mul(times);
                let room =
                    self.heap.check(length.saturating_mul(VALUE)).and_then(|()| self.meter.work(length));
                Some(room.and_then(|()| self.items(value)).and_then(|items| {
                    let items = items.repeat(if items.is_empty() { 0 } else { times });
                    if is_list { self.heap.list(items) } else { self.heap.tuple(items) }
                }))
            }
            _ => None,
        }
    }

    fn contains(&mut self, all: Value, one: Value) -> Checked<bool> {
        match self.heap.object(all) {
            Some(Object::Text(text)) => {
                let text = text.clone();
                let part = self.text_of(one, "what is searched in a string")?;
                self.meter.bytes(text.len())?;
                Ok(text.contains(&*part))
            }
            Some(Object::Dict(_) | Object::Set(_)) => {
                let key = self.key(one)?;
                Ok(match self.heap.object(all) {
                    Some(Object::Dict(dict) | Object::Set(dict)) => dict.entries.contains_key(&key),
                    _ => false,
                })
            }
            Some(Object::Range(range)) => {
                let one = match one {
                    Value::Int(one) => one,
                    Value::Float(one) if one == (one as i128) as f64 => one as i128,
                    _ => return Ok(false),
                };
                let (start, step, length) = (range.start, range.step, range.length);
                let offset = one.checked_sub(start);
                let index = offset.filter(|offset| offset % step == 0).map(|offset| offset / step);
                Ok(index.and_then(|index| usize::try_from(index).ok()).is_some_and(|index| index < length))
            }
            Some(Object::List(_) | Object::Tuple(_)) => {
                let mut index = 0;
                while let Some(item) = self.item(all, index) {
                    if self.is_equal(item, one)? {
                        return Ok(true);
                    }
                    index += 1;
                }
                Ok(false)
            }
            _ => Err(Fault::new(format!("in is not defined for {}", self.a_type(all)))),
        }
    }

    /// An operator that changes its left operand, if that can be changed.
    pub(crate) fn in_place(&mut self, op: BinaryOp, left: Value, right: Value) -> Checked<Value> {
        match (op, self.heap.object(left)) {
            (BinaryOp::Add, Some(Object::List(_))) if self.is_iterable(right) => {
                let more = self.items(right)?;
                self.heap.changing_list(left, more.len())?.extend(more);
                Ok(left)
            }
            (BinaryOp::Or, Some(Object::Dict(_))) if self.heap.as_dict(right).is_some() => {
                self.add_entries(left, right)?;
                Ok(left)
            }
            _ => self.binary(op, left, right),
        }
    }
}

fn int(value: Option<i128>) -> Checked<Value> {
    value.map(Value::Int).ok_or_else(|| Fault::new("the integer is too large: integers have 128 bits"))
}

fn ints(op: BinaryOp, left: i128, right: i128) -> Checked<Value> {
    let shift = || u32::try_from(right).map_err(|_| Fault::new("the shift is negative or too large"));
    match op {
        BinaryOp::Add => int(left.checked_add(right)),
        BinaryOp::Subtract => int(left.checked_sub(right)),
        BinaryOp::Multiply => int(left.checked_mul(right)),
        BinaryOp::Divide => divided(left as f64, right as f64),
        BinaryOp::FloorDivide | BinaryOp::Modulo if right == 0 => Err(Fault::new("division by zero")),
        BinaryOp::FloorDivide => {
            let (quotient, rest) = (left.checked_div(right), left.checked_rem(right).unwrap_or_default());
            let is_rounded = rest != 0 && (rest < 0) != (right < 0);
            int(quotient.and_then(|quotient| quotient.checked_sub(i128::from(is_rounded))))
        }
        BinaryOp::Modulo => {
            let rest = left.checked_rem(right).unwrap_or_default();
            Ok(Value::Int(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }))
        }
        BinaryOp::Or => Ok(Value::Int(left | right)),
        BinaryOp::Xor => Ok(Value::Int(left ^ right)),
        BinaryOp::And => Ok(Value::Int(left & right)),
        BinaryOp::ShiftRight => Ok(Value::Int(left >> shift()?.min(127))),
        BinaryOp::ShiftLeft => {
            let shifted = left.checked_shl(shift()?).filter(|shifted| {
                // Nothing was shifted out.
                shifted >> u32::try_from(right).unwrap_or(0) == left
            });
            int(shifted)
        }
        _ => Err(Fault::new(format!("{} is not defined for integers", op.as_str()))),
    }
}

fn divided(left: f64, right: f64) -> Checked<Value> {
    if right == 0.0 { Err(Fault::new("division by zero")) } else { Ok(Value::Float(left / right)) }
}

fn floats(op: BinaryOp, left: Value, right: Value) -> Option<Checked<Value>> {
    let (left, right) = (as_float(left)?, as_float(right)?);
    Some(match op {
        BinaryOp::Add => Ok(Value::Float(left + right)),
        BinaryOp::Subtract => Ok(Value::Float(left - right)),
        BinaryOp::Multiply => Ok(Value::Float(left * right)),
        BinaryOp::Divide => divided(left, right),
        BinaryOp::FloorDivide | BinaryOp::Modulo if right == 0.0 => Err(Fault::new("division by zero")),
        BinaryOp::FloorDivide => Ok(Value::Float((left / right).floor())),
        BinaryOp::Modulo => {
            // It has the sign of the divisor, also if it is zero.
            let rest = left % right;
            let is_other_sign = rest != 0.0 && (rest < 0.0) != (right < 0.0);
            Ok(Value::Float(if is_other_sign { rest + right } else { rest.copysign(right) }))
        }
        _ => return None,
    })
}

pub(crate) fn as_float(value: Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        _ => None,
    }
}
