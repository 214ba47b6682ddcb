//! The grammar of templates, and the data that they refer to.

use super::{
    MAX_DEPTH, Path,
    error::{TemplateError, quoted},
    lex::{Action, Kind, Token},
    scope::{Scope, is_function},
};

pub(super) fn references(actions: &[Action<'_>]) -> Result<Vec<Path>, TemplateError> {
    let mut blocks = Blocks { actions: actions.iter(), paths: Vec::new() };
    match blocks.list(&mut Scope::root(), 0)? {
        Stop::Text => Ok(blocks.paths),
        Stop::Else(_) => Err("{{else}} without {{if}}".into()),
        Stop::End => Err("{{end}} without a block".into()),
    }
}

/// The end of a list of actions.
enum Stop<'a> {
    Text,
    Else(&'a Action<'a>),
    End,
}

struct Blocks<'a> {
    actions: std::slice::Iter<'a, Action<'a>>,
    paths: Vec<Path>,
}

impl<'a> Blocks<'a> {
    fn list(&mut self, scope: &mut Scope, depth: usize) -> Result<Stop<'a>, TemplateError> {
        if depth > MAX_DEPTH {
            return Err(format!("blocks are nested deeper than {MAX_DEPTH} levels").into());
        }
        while let Some(action) = self.actions.next() {
            let word = match &action.tokens[0].kind {
                Kind::Word(word) => word.as_str(),
                _ => "",
            };
            match word {
                "if" | "with" | "range" => self.block(word, action, 1, scope, depth)?,
                "else" => return Ok(Stop::Else(action)),
                "end" => return Ok(Stop::End),
                "break" | "continue" if scope.in_range => {}
                "break" | "continue" => {
                    return Err(format!("{{{{{word}}}}} outside of {{{{range}}}}").into());
                }
                "define" | "block" | "template" => {
                    return Err(format!("{word} is not supported: templates cannot include others").into());
                }
                _ => drop(self.pipeline(action, 0, scope)?),
            }
        }
        Ok(Stop::Text)
    }

    /// An `if`, `with` or `range` up to its end. Its pipeline starts at the token `from`.
    fn block(
        &mut self,
        word: &str,
        action: &Action<'_>,
        from: usize,
        outer: &Scope,
        depth: usize,
    ) -> Result<(), TemplateError> {
        let mut inner = outer.clone();
        let value = self.pipeline(action, from, &mut inner)?;
        // The other branch sees the variables, but has the outer dot.
        let mut other = Scope { dot: outer.dot.clone(), in_range: outer.in_range, ..inner.clone() };
        match word {
            "with" => inner.dot = value,
            "range" => (inner.dot, inner.in_range) = (None, true),
            _ => {}
        }
        match self.list(&mut inner, depth + 1)? {
            Stop::End => Ok(()),
            Stop::Text => Err(format!("{{{{{word}}}}} has no {{{{end}}}}").into()),
            Stop::Else(action) => match action.tokens.get(1).map(|token| &token.kind) {
                Some(Kind::Word(next)) if next == "if" || next == "with" && word == "with" => {
                    let next = next.clone();
                    // The next `end` closes both.
                    self.block(&next, action, 2, &other, depth + 1)
                }
                Some(_) => Err(format!("unexpected words after else in {}", quoted(action.text)).into()),
                None => match self.list(&mut other, depth + 1)? {
                    Stop::End => Ok(()),
                    Stop::Else(_) => Err("a block has two {{else}}".into()),
                    Stop::Text => Err(format!("{{{{{word}}}}} has no {{{{end}}}}").into()),
                },
            },
        }
    }

    fn pipeline(
        &mut self,
        action: &Action<'_>,
        from: usize,
        scope: &mut Scope,
    ) -> Result<Option<Path>, TemplateError> {
        let mut pipeline =
            Pipeline { text: action.text, tokens: &action.tokens, at: from, paths: &mut self.paths };
        let value = pipeline.declaration(scope)?;
        match pipeline.tokens.get(pipeline.at) {
            None => Ok(value),
            Some(_) => Err(format!("unexpected ) in {}", quoted(action.text)).into()),
        }
    }
}

/// The parser of one pipeline.
struct Pipeline<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    paths: &'a mut Vec<Path>,
}

impl Pipeline<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token { kind: Kind::Sign(next), .. }) if *next == sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn incomplete(&self) -> String {
        format!("{} is incomplete", quoted(self.text))
    }

    /// A pipeline that may declare or set variables: `$x := …`, `$i, $x := …` or `$x = …`.
    fn declaration(&mut self, scope: &mut Scope) -> Result<Option<Path>, TemplateError> {
        let mut names = Vec::new();
        let start = self.at;
        while let Some(Token { kind: Kind::Variable(name), .. }) = self.peek() {
            names.push(name.clone());
            self.at += 1;
            if !self.take(",") {
                break;
            }
        }
        if !names.is_empty() && self.take(":=") {
            let value = self.commands(scope, 0)?;
            // Two variables are the key and the item of a range, whose paths are unknown.
            let path = value.clone().filter(|_| names.len() == 1);
            names.into_iter().for_each(|name| scope.declare(name, path.clone()));
            return Ok(value);
        }
        if !names.is_empty() && self.take("=") {
            let value = self.commands(scope, 0)?;
            for name in &names {
                self.variable(name, scope)?;
                scope.forget(name);
            }
            return Ok(value);
        }
        self.at = start;
        self.commands(scope, 0)
    }

    /// Commands separated by `|`. The path is known if there is only one command that only names a value.
    fn commands(&mut self, scope: &Scope, depth: usize) -> Result<Option<Path>, TemplateError> {
        if depth > MAX_DEPTH {
            return Err(format!("parentheses are nested deeper than {MAX_DEPTH} levels").into());
        }
        let mut value = self.command(scope, depth, true)?;
        while self.take("|") {
            value = None;
            self.command(scope, depth, false)?;
        }
        Ok(value)
    }

    fn command(&mut self, scope: &Scope, depth: usize, first: bool) -> Result<Option<Path>, TemplateError> {
        let start = self.at;
        let mut operands: Vec<Option<Path>> = Vec::new();
        let mut texts: Vec<Option<String>> = Vec::new();
        while let Some(token) = self.peek() {
            if matches!(&token.kind, Kind::Sign("|" | ")")) {
                break;
            }
            texts.push(match &token.kind {
                Kind::Text(text) => Some(text.clone()),
                _ => None,
            });
            operands.push(self.operand(scope, depth)?);
        }
        match &self.tokens.get(start).map(|token| &token.kind) {
            _ if operands.is_empty() => return Err(self.incomplete().into()),
            Some(Kind::Literal(text)) if !first || operands.len() > 1 => {
                return Err(self.not_callable(text).into());
            }
            Some(Kind::Text(text)) if !first || operands.len() > 1 => {
                return Err(self.not_callable(&quoted(text)).into());
            }
            Some(Kind::Word(word)) if word == "nil" => return Err(self.not_callable(word).into()),
            Some(Kind::Word(word)) if word == "index" => return Ok(self.indexed(&operands, &texts)),
            _ => {}
        }
        Ok(if operands.len() == 1 { operands.remove(0) } else { None })
    }

    /// `index .steps "a"` is `.steps.a`.
    fn indexed(&mut self, operands: &[Option<Path>], texts: &[Option<String>]) -> Option<Path> {
        let mut path = operands.get(1).cloned().flatten()?;
        let keys = texts.get(2..).unwrap_or_default();
        path.extend(keys.iter().map_while(Clone::clone));
        self.paths.push(path.clone());
        keys.iter().all(Option::is_some).then_some(path)
    }

    fn not_callable(&self, what: &str) -> String {
        format!("{what} cannot be called in {}", quoted(self.text))
    }

    /// A value with its fields.
    fn operand(&mut self, scope: &Scope, depth: usize) -> Result<Option<Path>, TemplateError> {
        let Some(token) = self.peek().cloned() else { return Err(self.incomplete().into()) };
        self.at += 1;
        let mut path = match token.kind {
            Kind::Dot => scope.dot.clone(),
            Kind::Field(name) => scope.dot.clone().map(|mut path| {
                path.push(name);
                path
            }),
            Kind::Variable(name) => self.variable(&name, scope)?,
            Kind::Sign("(") => {
                let value = self.commands(scope, depth + 1)?;
                if !self.take(")") {
                    return Err(format!("( is not closed in {}", quoted(self.text)).into());
                }
                value
            }
            Kind::Word(word) if matches!(word.as_str(), "true" | "false" | "nil") => None,
            Kind::Word(word) if is_function(&word) => None,
            Kind::Word(word) => {
                return Err(format!(
                    "there is no function {word} in {}: use json, quote, fromJson or a function of Go's templates",
                    quoted(self.text)
                )
                .into());
            }
            Kind::Text(_) | Kind::Literal(_) => None,
            Kind::Sign(sign) => {
                return Err(format!("unexpected {sign} in {}", quoted(self.text)).into());
            }
        };
        while let Some(Token { kind: Kind::Field(name), spaced: false }) = self.peek() {
            if let Some(path) = &mut path {
                path.push(name.clone());
            }
            self.at += 1;
        }
        self.paths.extend(path.clone());
        Ok(path)
    }

    fn variable(&self, name: &str, scope: &Scope) -> Result<Option<Path>, TemplateError> {
        let path = scope.variable(name).cloned();
        path.ok_or_else(|| format!("there is no variable ${name} in {}", quoted(self.text)).into())
    }
}
