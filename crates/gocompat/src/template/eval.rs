//! Templates with data.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value};

use super::{
    MAX_OUTPUT, RenderError,
    compare::is_true,
    error::quoted,
    format::{kind, text_of},
    functions,
    tree::{Base, Command, Node, Operand, Pipeline},
    value::{Budget, Val},
};

pub(super) fn render(nodes: &[Node], data: &Value) -> Result<String, RenderError> {
    let root = Cow::Borrowed(data);
    let mut eval = Eval {
        variables: vec![(String::new(), root.clone())],
        output: String::new(),
        budget: Budget::default(),
    };
    eval.list(nodes, &root)?;
    Ok(eval.output)
}

/// How a list of actions ended.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Eval<'a> {
    variables: Vec<(String, Val<'a>)>,
    output: String,
    budget: Budget,
}

impl<'a> Eval<'a> {
    fn list(&mut self, nodes: &[Node], dot: &Val<'a>) -> Result<Flow, RenderError> {
        for node in nodes {
            self.budget.step()?;
            let flow = match node {
                Node::Text(text) => self.write(text)?,
                Node::Print(pipeline) => {
                    let value = self.pipeline(pipeline, dot)?;
                    if pipeline.variables.is_empty() {
                        self.write(&text_of(&value))?;
                    }
                    Flow::Next
                }
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
                Node::If(pipeline, then, other)
                | Node::With(pipeline, then, other)
                | Node::Range(pipeline, then, other) => {
                    let outer = self.variables.len();
                    let flow = match node {
                        Node::Range(..) => self.range(pipeline, then, other, dot)?,
                        _ => {
                            let value = self.pipeline(pipeline, dot)?;
                            match (is_true(&value), node) {
                                (true, Node::With(..)) => self.list(then, &value)?,
                                (true, _) => self.list(then, dot)?,
                                (false, _) => self.list(other, dot)?,
                            }
                        }
                    };
                    self.variables.truncate(outer);
                    flow
                }
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, text: &str) -> Result<Flow, RenderError> {
        self.budget.take(text.len())?;
        if self.output.len() + text.len() > MAX_OUTPUT {
            return Err("its text is too large".into());
        }
        self.output.push_str(text);
        Ok(Flow::Next)
    }

    fn range(
        &mut self,
        pipeline: &Pipeline,
        body: &[Node],
        other: &[Node],
        dot: &Val<'a>,
    ) -> Result<Flow, RenderError> {
        let list = self.commands(pipeline, dot)?;
        let items: Box<dyn Iterator<Item = (Value, Val<'a>)>> = match list {
            Cow::Borrowed(Value::Array(items)) => {
                Box::new(items.iter().enumerate().map(|(index, item)| (index.into(), Cow::Borrowed(item))))
            }
            Cow::Owned(Value::Array(items)) => {
                Box::new(items.into_iter().enumerate().map(|(index, item)| (index.into(), Cow::Owned(item))))
            }
            Cow::Borrowed(Value::Object(map)) => {
                let sorted: BTreeMap<&String, &Value> = map.iter().collect();
                let items = sorted.into_iter();
                Box::new(items.map(|(key, item)| (key.as_str().into(), Cow::Borrowed(item))))
            }
            Cow::Owned(Value::Object(map)) => {
                let sorted: BTreeMap<String, Value> = map.into_iter().collect();
                Box::new(sorted.into_iter().map(|(key, item)| (key.into(), Cow::Owned(item))))
            }
            other => match (&*other, other.as_i64()) {
                (Value::Null, _) => Box::new(std::iter::empty()),
                (_, Some(count)) => {
                    Box::new((0..count).map(|number| (number.into(), Cow::Owned(number.into()))))
                }
                _ => return Err(failed(pipeline, format!("range over {}", kind(&other)))),
            },
        };
        let mark = self.variables.len();
        let mut is_empty = true;
        for (key, item) in items {
            self.budget.step()?;
            is_empty = false;
            match &pipeline.variables[..] {
                [one] => self.set(one, item.clone(), pipeline)?,
                [first, second, ..] => {
                    self.set(first, Cow::Owned(key), pipeline)?;
                    self.set(second, item.clone(), pipeline)?;
                }
                [] => {}
            }
            let flow = self.list(body, &item)?;
            self.variables.truncate(mark);
            if flow == Flow::Break {
                break;
            }
        }
        if is_empty { self.list(other, dot) } else { Ok(Flow::Next) }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Val<'a>) -> Result<Val<'a>, RenderError> {
        let value = self.commands(pipeline, dot)?;
        for name in &pipeline.variables {
            self.set(name, value.clone(), pipeline)?;
        }
        Ok(value)
    }

    fn set(&mut self, name: &str, value: Val<'a>, pipeline: &Pipeline) -> Result<(), RenderError> {
        if let Cow::Owned(value) = &value {
            self.budget.take(size(value))?;
        }
        let known = self.variables.iter_mut().rev().find(|(known, _)| known == name);
        match known.filter(|_| !pipeline.declares) {
            Some((_, variable)) => *variable = value,
            None => self.variables.push((name.to_owned(), value)),
        }
        Ok(())
    }

    fn commands(&mut self, pipeline: &Pipeline, dot: &Val<'a>) -> Result<Val<'a>, RenderError> {
        let mut value = None;
        for command in &pipeline.commands {
            self.budget.step()?;
            value = Some(self.command(command, pipeline, dot, value)?);
        }
        Ok(value.unwrap_or(Cow::Owned(Value::Null)))
    }

    fn command(
        &mut self,
        Command(operands): &Command,
        pipeline: &Pipeline,
        dot: &Val<'a>,
        piped: Option<Val<'a>>,
    ) -> Result<Val<'a>, RenderError> {
        let [first, rest @ ..] = &operands[..] else { return Ok(Cow::Owned(Value::Null)) };
        let Base::Function(name) = &first.base else {
            if !rest.is_empty() || piped.is_some() {
                return Err(failed(pipeline, "only a function has arguments"));
            }
            return self.operand(first, pipeline, dot);
        };
        // These end with the argument that decides.
        let decides = match &**name {
            "and" => Some(false),
            "or" => Some(true),
            _ => None,
        };
        let mut arguments = Vec::new();
        for operand in rest {
            let value = self.operand(operand, pipeline, dot)?;
            if decides == Some(is_true(&value)) {
                return Ok(value);
            }
            arguments.push(value);
        }
        arguments.extend(piped);
        let value = functions::call(name, arguments, &mut self.budget)
            .map_err(|message| failed(pipeline, format!("{name}: {message}")))?;
        let mut fields = value;
        for field in &first.fields {
            fields = self.project(&fields, std::slice::from_ref(field), pipeline)?;
        }
        Ok(fields)
    }

    fn operand(
        &mut self,
        operand: &Operand,
        pipeline: &Pipeline,
        dot: &Val<'a>,
    ) -> Result<Val<'a>, RenderError> {
        self.budget.step()?;
        let value = match &operand.base {
            Base::Dot => return self.project(dot, &operand.fields, pipeline),
            Base::Variable(name) => {
                let known = self.variables.iter().rev().position(|(known, _)| known == name);
                let Some(index) = known.map(|position| self.variables.len() - 1 - position) else {
                    return Err(failed(pipeline, format!("there is no variable ${name}")));
                };
                // Taken out for a moment, as what it costs is counted meanwhile.
                let value = std::mem::replace(&mut self.variables[index].1, Cow::Owned(Value::Null));
                let projected = self.project(&value, &operand.fields, pipeline);
                self.variables[index].1 = value;
                return projected;
            }
            Base::Pipeline(inner) => self.commands(inner, dot)?,
            Base::Function(_) => self.command(&Command(vec![operand.clone()]), pipeline, dot, None)?,
            Base::Literal(value) => Cow::Owned(value.clone()),
        };
        if operand.fields.is_empty() || matches!(operand.base, Base::Function(_)) {
            return Ok(value);
        }
        self.project(&value, &operand.fields, pipeline)
    }

    /// The value of a field. What is missing is null, and so are its fields.
    fn project(
        &mut self,
        value: &Val<'a>,
        fields: &[String],
        pipeline: &Pipeline,
    ) -> Result<Val<'a>, RenderError> {
        match value {
            Cow::Borrowed(value) => {
                walk(value, fields, pipeline).map(|found| found.map_or(NULL, Cow::Borrowed))
            }
            Cow::Owned(value) => match walk(value, fields, pipeline)? {
                Some(found) => {
                    self.budget.take(size(found))?;
                    Ok(Cow::Owned(found.clone()))
                }
                None => Ok(NULL),
            },
        }
    }
}

const NULL: Val<'static> = Cow::Owned(Value::Null);

fn walk<'v>(
    value: &'v Value,
    fields: &[String],
    pipeline: &Pipeline,
) -> Result<Option<&'v Value>, RenderError> {
    let mut value = value;
    for field in fields {
        match value {
            Value::Object(map) => match map.get(field) {
                Some(found) => value = found,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(failed(pipeline, format!("{} has no field {field}", kind(other)))),
        }
    }
    Ok(Some(value))
}

fn failed(pipeline: &Pipeline, message: impl std::fmt::Display) -> RenderError {
    format!("{message} in {}", quoted(&pipeline.text)).into()
}

/// About how many bytes a value has.
fn size(value: &Value) -> usize {
    let of_map = |map: &Map<String, Value>| map.iter().map(|(key, value)| key.len() + size(value)).sum();
    8 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => of_map(map),
        _ => 0,
    }
}
