//! The grammar of templates.

use serde_json::{Number, Value};

use super::{
    MAX_DEPTH,
    error::{TemplateError, quoted},
    functions::is_function,
    lex::{Action, Kind, Piece, Token},
    tree::{Base, Command, Node, Operand, Pipeline},
};

pub(super) fn nodes(pieces: &[Piece<'_>]) -> Result<Vec<Node>, TemplateError> {
    let mut blocks = Blocks { pieces: pieces.iter() };
    let (nodes, stop) = blocks.list(false, 0)?;
    match stop {
        Stop::Text => Ok(nodes),
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
    pieces: std::slice::Iter<'a, Piece<'a>>,
}

impl<'a> Blocks<'a> {
    fn list(&mut self, in_range: bool, depth: usize) -> Result<(Vec<Node>, Stop<'a>), TemplateError> {
        if depth > MAX_DEPTH {
            return Err(format!("blocks are nested deeper than {MAX_DEPTH} levels").into());
        }
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let action = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text((*text).into()));
                    continue;
                }
                Piece::Action(action) => action,
            };
            let word = match &action.tokens[0].kind {
                Kind::Word(word) => word.as_str(),
                _ => "",
            };
            match word {
                "if" | "with" | "range" => nodes.push(self.block(word, action, 1, in_range, depth)?),
                "else" => return Ok((nodes, Stop::Else(action))),
                "end" => return Ok((nodes, Stop::End)),
                "break" if in_range => nodes.push(Node::Break),
                "continue" if in_range => nodes.push(Node::Continue),
                "break" | "continue" => {
                    return Err(format!("{{{{{word}}}}} outside of {{{{range}}}}").into());
                }
                "define" | "block" | "template" => {
                    return Err(format!("{word} is not supported: templates cannot include others").into());
                }
                _ => nodes.push(Node::Print(pipeline(action, 0)?)),
            }
        }
        Ok((nodes, Stop::Text))
    }

    /// An `if`, `with` or `range` up to its end. Its pipeline starts at the token `from`.
    fn block(
        &mut self,
        word: &str,
        action: &Action<'_>,
        from: usize,
        in_range: bool,
        depth: usize,
    ) -> Result<Node, TemplateError> {
        let pipeline = pipeline(action, from)?;
        let not_closed = || TemplateError::from(format!("{{{{{word}}}}} has no {{{{end}}}}"));
        let (then, stop) = self.list(in_range || word == "range", depth + 1)?;
        let other = match stop {
            Stop::End => Vec::new(),
            Stop::Text => return Err(not_closed()),
            Stop::Else(action) => match action.tokens.get(1).map(|token| &token.kind) {
                Some(Kind::Word(next)) if next == "if" || next == "with" && word == "with" => {
                    // The next `end` closes both.
                    vec![self.block(next, action, 2, in_range, depth + 1)?]
                }
                Some(_) => {
                    return Err(format!("unexpected words after else in {}", quoted(action.text)).into());
                }
                None => match self.list(in_range, depth + 1)? {
                    (other, Stop::End) => other,
                    (_, Stop::Else(_)) => return Err("a block has two {{else}}".into()),
                    (_, Stop::Text) => return Err(not_closed()),
                },
            },
        };
        Ok(match word {
            "if" => Node::If(pipeline, then, other),
            "with" => Node::With(pipeline, then, other),
            _ => Node::Range(pipeline, then, other),
        })
    }
}

fn pipeline(action: &Action<'_>, from: usize) -> Result<Pipeline, TemplateError> {
    let mut parser = Parser { text: action.text, tokens: &action.tokens, at: from };
    let pipeline = parser.declaration()?;
    match parser.tokens.get(parser.at) {
        None => Ok(pipeline),
        Some(_) => Err(format!("unexpected ) in {}", quoted(action.text)).into()),
    }
}

/// The parser of one pipeline.
struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
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
    fn declaration(&mut self) -> Result<Pipeline, TemplateError> {
        let mut variables = Vec::new();
        let start = self.at;
        while let Some(Token { kind: Kind::Variable(name), .. }) = self.peek() {
            variables.push(name.clone());
            self.at += 1;
            if !self.take(",") {
                break;
            }
        }
        if !variables.is_empty() {
            let declares = self.take(":=");
            if declares || self.take("=") {
                return Ok(Pipeline { variables, declares, ..self.commands(0)? });
            }
        }
        self.at = start;
        self.commands(0)
    }

    /// Commands separated by `|`.
    fn commands(&mut self, depth: usize) -> Result<Pipeline, TemplateError> {
        if depth > MAX_DEPTH {
            return Err(format!("parentheses are nested deeper than {MAX_DEPTH} levels").into());
        }
        let mut commands = vec![self.command(depth, true)?];
        while self.take("|") {
            commands.push(self.command(depth, false)?);
        }
        Ok(Pipeline { text: self.text.into(), variables: Vec::new(), declares: false, commands })
    }

    fn command(&mut self, depth: usize, first: bool) -> Result<Command, TemplateError> {
        let start = self.at;
        let mut operands = Vec::new();
        while let Some(token) = self.peek() {
            if matches!(&token.kind, Kind::Sign("|" | ")")) {
                break;
            }
            operands.push(self.operand(depth)?);
        }
        match &self.tokens.get(start).map(|token| &token.kind) {
            _ if operands.is_empty() => Err(self.incomplete().into()),
            Some(Kind::Literal(text)) if !first || operands.len() > 1 => Err(self.not_callable(text).into()),
            Some(Kind::Text(text)) if !first || operands.len() > 1 => {
                Err(self.not_callable(&quoted(text)).into())
            }
            Some(Kind::Word(word)) if word == "nil" => Err(self.not_callable(word).into()),
            _ => Ok(Command(operands)),
        }
    }

    fn not_callable(&self, what: &str) -> String {
        format!("{what} cannot be called in {}", quoted(self.text))
    }

    /// A value with its fields.
    fn operand(&mut self, depth: usize) -> Result<Operand, TemplateError> {
        let Some(token) = self.peek().cloned() else { return Err(self.incomplete().into()) };
        self.at += 1;
        let mut fields = Vec::new();
        let base = match token.kind {
            Kind::Dot => Base::Dot,
            Kind::Field(name) => {
                fields.push(name);
                Base::Dot
            }
            Kind::Variable(name) => Base::Variable(name),
            Kind::Sign("(") => {
                let inner = self.commands(depth + 1)?;
                if !self.take(")") {
                    return Err(format!("( is not closed in {}", quoted(self.text)).into());
                }
                Base::Pipeline(inner)
            }
            Kind::Word(word) if word == "nil" => Base::Literal(Value::Null),
            Kind::Word(word) if word == "true" || word == "false" => Base::Literal((word == "true").into()),
            Kind::Word(word) if is_function(&word) => Base::Function(word.into()),
            Kind::Word(word) => {
                return Err(format!(
                    "there is no function {word} in {}: use json, quote, fromJson or a function of Go's templates",
                    quoted(self.text)
                )
                .into());
            }
            Kind::Text(text) => Base::Literal(text.into()),
            Kind::Literal(text) => Base::Literal(number(&text)),
            Kind::Sign(sign) => {
                return Err(format!("unexpected {sign} in {}", quoted(self.text)).into());
            }
        };
        while let Some(Token { kind: Kind::Field(name), spaced: false }) = self.peek() {
            fields.push(name.clone());
            self.at += 1;
        }
        Ok(Operand { base, fields })
    }
}

/// The value of a number, whose form the lexer has checked.
fn number(text: &str) -> Value {
    let plain = text.replace('_', "").to_lowercase();
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, plain.trim_start_matches('+')),
    };
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)]
        .iter()
        .find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, *radix)));
    let (digits, radix) = radix.unwrap_or((digits, 10));
    if let Ok(whole) = i64::from_str_radix(digits, radix) {
        return (sign * whole).into();
    }
    plain.parse().ok().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
}
