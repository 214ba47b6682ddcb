//! The lexer: a template as text and actions, and those as tokens.

use std::{iter::Peekable, str::CharIndices};

use super::error::{TemplateError, quoted};

/// An action: the text between `{{` and `}}`.
pub(super) struct Action<'a> {
    /// The text, with its delimiters, for messages.
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
}

/// A token, and whether there is a space before it: `.a .b` are two values, `.a.b` is one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) spaced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A function or a keyword.
    Word(String),
    /// `.name`.
    Field(String),
    /// `.` alone.
    Dot,
    /// `$name`, without the dollar sign.
    Variable(String),
    Text(String),
    /// A number or a character.
    Literal(String),
    /// `(`, `)`, `|`, `,`, `:=` or `=`.
    Sign(&'static str),
}

/// A part of a template.
pub(super) enum Piece<'a> {
    /// Text that is written as it is.
    Text(&'a str),
    Action(Action<'a>),
}

/// The parts of a template, in their order, without comments.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut trims_start = false;
    while let Some(start) = rest.find("{{") {
        let before = &rest[..start];
        rest = &rest[start..];
        let inner = trimmed(&rest[2..]);
        push_text(&mut pieces, before, trims_start, inner.len() < rest.len() - 2);
        let end = if inner.starts_with("/*") {
            let comment = inner.find("*/").map(|end| rest.len() - inner.len() + end + 2);
            let comment = comment.ok_or_else(|| format!("a comment is not closed: {}", quoted(rest)))?;
            let after = &rest[comment..];
            let after = after.trim_start().trim_start_matches('-');
            if !after.starts_with("}}") {
                return Err(format!("a comment must be alone in {}", quoted(rest)).into());
            }
            rest.len() - after.len() + 2
        } else {
            let mut lexer =
                Lexer { all: rest, chars: inner.char_indices().peekable(), inner, tokens: Vec::new() };
            let end = lexer.run()?;
            let end = rest.len() - inner.len() + end;
            let action = Action { text: &rest[..end], tokens: lexer.tokens };
            if action.tokens.is_empty() {
                return Err(format!("{} is empty", quoted(action.text)).into());
            }
            pieces.push(Piece::Action(action));
            end
        };
        trims_start = rest[..end].ends_with("-}}");
        rest = &rest[end..];
    }
    push_text(&mut pieces, rest, trims_start, false);
    Ok(pieces)
}

fn push_text<'a>(pieces: &mut Vec<Piece<'a>>, mut text: &'a str, trims_start: bool, trims_end: bool) {
    if trims_start {
        text = text.trim_start();
    }
    if trims_end {
        text = text.trim_end();
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// The action without the marker that trims the text before it.
fn trimmed(inner: &str) -> &str {
    match inner.strip_prefix('-') {
        Some(rest) if rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => inner,
    }
}

struct Lexer<'a> {
    all: &'a str,
    inner: &'a str,
    chars: Peekable<CharIndices<'a>>,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    /// Reads tokens up to the end of the action, and returns its position.
    fn run(&mut self) -> Result<usize, TemplateError> {
        let mut spaced = false;
        loop {
            let Some(&(at, c)) = self.chars.peek() else {
                return Err(format!("{{{{ is not closed: {}", quoted(self.all)).into());
            };
            let rest = &self.inner[at..];
            if rest.starts_with("}}") {
                return Ok(at + 2);
            }
            if spaced && rest.starts_with("-}}") {
                return Ok(at + 3);
            }
            if c.is_whitespace() {
                self.chars.next();
                spaced = true;
                continue;
            }
            let kind = self.token(c)?;
            self.tokens.push(Token { kind, spaced });
            spaced = false;
        }
    }

    fn token(&mut self, c: char) -> Result<Kind, TemplateError> {
        self.chars.next();
        let next = self.chars.peek().map(|(_, next)| *next);
        match c {
            '.' if next.is_some_and(is_word) && !next.is_some_and(|next| next.is_ascii_digit()) => {
                let name = self.word(String::new());
                self.ends(&name)?;
                Ok(Kind::Field(name))
            }
            '.' if !next.is_some_and(|next| next.is_ascii_digit()) => Ok(Kind::Dot),
            '$' => {
                let name = self.word(String::new());
                self.ends(&name)?;
                Ok(Kind::Variable(name))
            }
            '"' | '\'' | '`' => self.text(c),
            '|' => Ok(Kind::Sign("|")),
            '(' => Ok(Kind::Sign("(")),
            ')' => Ok(Kind::Sign(")")),
            ',' => Ok(Kind::Sign(",")),
            '=' => Ok(Kind::Sign("=")),
            ':' if next == Some('=') => {
                self.chars.next();
                Ok(Kind::Sign(":="))
            }
            _ if c.is_ascii_digit()
                || matches!(c, '.' | '+' | '-')
                    && next.is_some_and(|next| next.is_ascii_digit() || next == '.') =>
            {
                self.number(c)
            }
            _ if is_word(c) => {
                let name = self.word(c.into());
                self.ends(&name)?;
                Ok(Kind::Word(name))
            }
            _ => Err(self.unexpected(c).into()),
        }
    }

    fn unexpected(&self, c: char) -> String {
        format!("unexpected {c:?} in {}", quoted(self.text_so_far()))
    }

    fn word(&mut self, mut word: String) -> String {
        while let Some((_, c)) = self.chars.next_if(|(_, c)| is_word(*c)) {
            word.push(c);
        }
        word
    }

    /// A name must end where Go allows it: `.my-step` is not a name.
    fn ends(&mut self, name: &str) -> Result<(), TemplateError> {
        let Some(&(at, c)) = self.chars.peek() else { return Ok(()) };
        if c.is_whitespace()
            || matches!(c, '.' | ',' | '|' | ':' | '(' | ')' | '=')
            || self.inner[at..].starts_with("}}")
        {
            return Ok(());
        }
        let unexpected = self.unexpected(c);
        let fields =
            self.tokens.iter().rev().take_while(|token| matches!(token.kind, Kind::Field(_))).count();
        if c != '-' || fields == 0 {
            return Err(unexpected.into());
        }
        let whole: String = self.inner[at..].chars().take_while(|c| is_word(*c) || *c == '-').collect();
        let path: Vec<_> = self.tokens[self.tokens.len() - fields..]
            .iter()
            .map(|token| match &token.kind {
                Kind::Field(field) => format!(".{field}"),
                _ => String::new(),
            })
            .collect();
        Err(format!("{unexpected}: write index {} \"{name}{whole}\"", path.join("")).into())
    }

    /// A string or a character in quotes.
    fn text(&mut self, quote: char) -> Result<Kind, TemplateError> {
        let mut text = String::new();
        loop {
            match self.chars.next() {
                Some((_, c)) if c == quote => break,
                Some((_, '\\')) if quote != '`' => text.push(self.escaped()?),
                Some((_, '\n')) if quote != '`' => return Err(self.unclosed_string().into()),
                Some((_, c)) => text.push(c),
                None => return Err(self.unclosed_string().into()),
            }
        }
        if quote != '\'' {
            return Ok(Kind::Text(text));
        }
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(Kind::Literal(u32::from(c).to_string())),
            _ => Err(format!("'{text}' is not a character in {}", quoted(self.text_so_far())).into()),
        }
    }

    /// The character of an escape, as Go has them.
    fn escaped(&mut self) -> Result<char, TemplateError> {
        let next = self.chars.next().map(|(_, c)| c);
        let digits = match next {
            Some('a') => return Ok('\x07'),
            Some('b') => return Ok('\x08'),
            Some('f') => return Ok('\x0c'),
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some('v') => return Ok('\x0b'),
            Some(c @ ('\\' | '\'' | '"')) => return Ok(c),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some(c) => return Err(self.unexpected_escape(c).into()),
            None => return Err(self.unclosed_string().into()),
        };
        let hex: String = self.chars.by_ref().take(digits).map(|(_, c)| c).collect();
        let code = u32::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == digits);
        code.and_then(char::from_u32).ok_or_else(|| self.unexpected_escape('x').into())
    }

    fn unexpected_escape(&self, c: char) -> String {
        format!("unknown escape \\{c} in {}", quoted(self.text_so_far()))
    }

    fn unclosed_string(&self) -> String {
        format!("a string is not closed: {}", quoted(self.all))
    }

    fn number(&mut self, first: char) -> Result<Kind, TemplateError> {
        let mut text = String::from(first);
        while let Some(&(_, c)) = self.chars.peek() {
            let exponent = text.ends_with(['e', 'E', 'p', 'P']) && !text.starts_with("0x");
            if is_word(c) || c == '.' || exponent && matches!(c, '+' | '-') {
                text.push(c);
                self.chars.next();
            } else {
                break;
            }
        }
        if is_number(&text) {
            return Ok(Kind::Literal(text));
        }
        Err(format!("{text} is not a number in {}", quoted(self.text_so_far())).into())
    }

    /// The action, up to its end if it has one.
    fn text_so_far(&self) -> &str {
        self.all.find("}}").map_or(self.all, |end| &self.all[..end + 2])
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']).replace('_', "").to_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = digits.strip_prefix(prefix) {
            return i128::from_str_radix(digits, radix).is_ok();
        }
    }
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.parse::<f64>().is_ok()
}
