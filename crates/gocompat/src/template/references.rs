//! The data that a template refers to.

use serde_json::Value;

use super::{
    Path,
    error::{TemplateError, quoted},
    scope::Scope,
    tree::{Base, Command, Node, Operand, Pipeline},
};

/// The paths of the data that a template refers to, in order of appearance.
pub(super) fn references(nodes: &[Node]) -> Result<Vec<Path>, TemplateError> {
    let mut walk = Walk { paths: Vec::new() };
    walk.list(nodes, &mut Scope::root())?;
    Ok(walk.paths)
}

struct Walk {
    paths: Vec<Path>,
}

impl Walk {
    fn list(&mut self, nodes: &[Node], scope: &mut Scope) -> Result<(), TemplateError> {
        for node in nodes {
            match node {
                Node::Text(_) | Node::Break | Node::Continue => {}
                Node::Print(pipeline) => drop(self.pipeline(pipeline, scope)?),
                Node::If(pipeline, then, other)
                | Node::With(pipeline, then, other)
                | Node::Range(pipeline, then, other) => {
                    let mut inner = scope.clone();
                    let value = self.pipeline(pipeline, &mut inner)?;
                    // The variable of a range is an item, whose path is unknown.
                    if matches!(node, Node::Range(..)) {
                        pipeline.variables.iter().for_each(|name| inner.forget(name));
                    }
                    // The other branch sees the variables, but has the outer dot.
                    let mut outer = inner.clone();
                    match node {
                        Node::With(..) => inner.dot = value,
                        Node::Range(..) => inner.dot = None,
                        _ => {}
                    }
                    self.list(then, &mut inner)?;
                    self.list(other, &mut outer)?;
                }
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, scope: &mut Scope) -> Result<Option<Path>, TemplateError> {
        let value = self.commands(pipeline, scope)?;
        let Pipeline { text, variables, declares, .. } = pipeline;
        for name in variables {
            if *declares {
                // Two variables are the key and the item of a range, whose paths are unknown.
                scope.declare(name.clone(), value.clone().filter(|_| variables.len() == 1));
            } else {
                variable(name, text, scope)?;
                scope.forget(name);
            }
        }
        Ok(value)
    }

    /// The path is known if there is only one command that only names a value.
    fn commands(&mut self, pipeline: &Pipeline, scope: &Scope) -> Result<Option<Path>, TemplateError> {
        let mut value = None;
        for command in &pipeline.commands {
            value = self.command(command, &pipeline.text, scope)?;
        }
        Ok(value.filter(|_| pipeline.commands.len() == 1))
    }

    fn command(
        &mut self,
        Command(operands): &Command,
        text: &str,
        scope: &Scope,
    ) -> Result<Option<Path>, TemplateError> {
        let mut paths = Vec::new();
        for operand in operands {
            paths.push(self.operand(operand, text, scope)?);
        }
        match &operands[..] {
            [Operand { base: Base::Function(name), .. }, _, keys @ ..] if **name == *"index" => {
                Ok(self.indexed(paths.get(1).cloned().flatten(), keys))
            }
            [_] => Ok(paths.pop().flatten()),
            _ => Ok(None),
        }
    }

    /// `index .steps "a"` is `.steps.a`.
    fn indexed(&mut self, path: Option<Path>, keys: &[Operand]) -> Option<Path> {
        let mut path = path?;
        let texts = keys.iter().map_while(|key| match &key.base {
            Base::Literal(Value::String(text)) => Some(text.clone()),
            _ => None,
        });
        let known = path.len() + keys.len();
        path.extend(texts);
        self.paths.push(path.clone());
        (path.len() == known).then_some(path)
    }

    fn operand(
        &mut self,
        operand: &Operand,
        text: &str,
        scope: &Scope,
    ) -> Result<Option<Path>, TemplateError> {
        let mut path = match &operand.base {
            Base::Dot => scope.dot.clone(),
            Base::Variable(name) => variable(name, text, scope)?,
            Base::Pipeline(inner) => self.commands(inner, scope)?,
            Base::Function(_) | Base::Literal(_) => None,
        };
        if let Some(path) = &mut path {
            path.extend(operand.fields.iter().cloned());
        }
        self.paths.extend(path.clone());
        Ok(path)
    }
}

fn variable(name: &str, text: &str, scope: &Scope) -> Result<Option<Path>, TemplateError> {
    let path = scope.variable(name).cloned();
    path.ok_or_else(|| format!("there is no variable ${name} in {}", quoted(text)).into())
}
