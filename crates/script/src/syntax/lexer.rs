//! From text to tokens.

use super::{
    literal::{number, text},
    token::{KEYWORDS, Kind, MARKS, RESERVED, Token},
};
use crate::error::Located;

/// How deep blocks may be nested.
const BLOCKS: usize = 40;

/// The tokens of a source.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, Located> {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), indents: Vec::new(), brackets: Vec::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    /// The columns of the blocks that are open. The first line sets the first, as a script may be indented as a whole.
    indents: Vec<usize>,
    /// The brackets that are open. Within them, lines have no meaning.
    brackets: Vec<(u8, u32)>,
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), Located> {
        let mut starts_line = true;
        while self.at < self.source.len() {
            if starts_line {
                self.indentation()?;
                starts_line = false;
                continue;
            }
            starts_line = self.token()?;
        }
        if let Some((bracket, at)) = self.brackets.last() {
            return Err(Located::new(*at, format!("'{}' is never closed", char::from(*bracket))));
        }
        self.end_line();
        for _ in 1..self.indents.len() {
            self.push(Kind::Dedent, self.at);
        }
        self.push(Kind::End, self.at);
        Ok(())
    }

    fn push(&mut self, kind: Kind, at: usize) {
        self.tokens.push(Token { kind, at: u32::try_from(at).unwrap_or(u32::MAX) });
    }

    fn error(&self, message: impl Into<String>) -> Located {
        Located::new(u32::try_from(self.at).unwrap_or(u32::MAX), message)
    }

    fn end_line(&mut self) {
        let is_empty = self
            .tokens
            .last()
            .is_none_or(|last| matches!(last.kind, Kind::Newline | Kind::Indent | Kind::Dedent));
        if !is_empty {
            self.push(Kind::Newline, self.at);
        }
    }

    /// The start of a line: a line with nothing but a comment has no indentation.
    fn indentation(&mut self) -> Result<(), Located> {
        let mut column = 0;
        let rest = self.source.as_bytes();
        while let Some(byte) = rest.get(self.at) {
            match byte {
                b' ' => column += 1,
                b'\t' => column = (column / 8 + 1) * 8,
                b'\r' | 0x0c => {}
                _ => break,
            }
            self.at += 1;
        }
        if matches!(rest.get(self.at), None | Some(b'\n' | b'#')) {
            return Ok(());
        }
        let Some(mut last) = self.indents.last().copied() else {
            self.indents.push(column);
            return Ok(());
        };
        if column > last {
            if self.indents.len() > BLOCKS {
                return Err(self.error(format!("blocks are nested deeper than {BLOCKS}")));
            }
            self.indents.push(column);
            self.push(Kind::Indent, self.at);
        }
        while column < last {
            self.indents.pop();
            last = match self.indents.last() {
                Some(outer) if *outer >= column => *outer,
                _ => return Err(self.error("the indentation fits no outer block")),
            };
            self.push(Kind::Dedent, self.at);
        }
        Ok(())
    }

    /// One token, or what is between tokens. Returns whether a line ends with it.
    fn token(&mut self) -> Result<bool, Located> {
        let rest = &self.source[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(false) };
        match first {
            '\n' => {
                let is_end = self.brackets.is_empty();
                if is_end {
                    self.end_line();
                }
                self.at += 1;
                return Ok(is_end);
            }
            ' ' | '\t' | '\r' | '\u{c}' => self.at += 1,
            '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
            '\\' => {
                let end = rest.strip_prefix("\\\r\n").or_else(|| rest.strip_prefix("\\\n"));
                let end = end.ok_or_else(|| self.error("a backslash must end its line"))?;
                self.at = self.source.len() - end.len();
            }
            '"' | '\'' => self.literal(0)?,
            '0'..='9' => self.number()?,
            '.' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number()?,
            first if first == '_' || first.is_alphabetic() => self.name()?,
            _ => self.mark()?,
        }
        Ok(false)
    }

    fn number(&mut self) -> Result<(), Located> {
        let start = self.at;
        let (kind, length) = number(&self.source[start..]).map_err(|message| self.error(message))?;
        self.at += length;
        self.push(kind, start);
        Ok(())
    }

    /// A string, after a prefix of this length.
    fn literal(&mut self, prefix: usize) -> Result<(), Located> {
        let start = self.at;
        let is_raw = prefix > 0;
        let (value, length) =
            text(&self.source[start + prefix..], is_raw).map_err(|message| self.error(message))?;
        self.at += prefix + length;
        self.push(Kind::Text(value.into()), start);
        Ok(())
    }

    fn name(&mut self) -> Result<(), Located> {
        let rest = &self.source[self.at..];
        let length = rest.find(|next: char| next != '_' && !next.is_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..length];
        if rest[length..].starts_with(['"', '\'']) {
            match word {
                "r" | "R" => return self.literal(1),
                "f" | "F" => {
                    return Err(
                        self.error("f-strings are not part of Starlark: use \"...\".format(...) or %")
                    );
                }
                "b" | "B" | "rb" | "br" => return Err(self.error("bytes are not supported: use a string")),
                _ => {}
            }
        }
        if let Some((word, instead)) = RESERVED.iter().find(|(reserved, _)| *reserved == word) {
            return Err(self.error(format!("{word} is not part of Starlark: {instead}")));
        }
        let kind = match KEYWORDS.iter().find(|keyword| **keyword == word) {
            Some(keyword) => Kind::Mark(keyword),
            None => Kind::Name(word.into()),
        };
        self.push(kind, self.at);
        self.at += length;
        Ok(())
    }

    fn mark(&mut self) -> Result<(), Located> {
        let rest = &self.source[self.at..];
        let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) else {
            let found = rest.chars().next().unwrap_or_default();
            return Err(self.error(format!("unexpected character {found:?}")));
        };
        match *mark {
            "**=" | "->" | ":=" => return Err(self.error(format!("{mark} is not part of Starlark"))),
            "(" | "[" | "{" => {
                let at = u32::try_from(self.at).unwrap_or(u32::MAX);
                self.brackets.push((mark.as_bytes()[0], at));
            }
            ")" | "]" | "}" => self.close(mark)?,
            _ => {}
        }
        self.push(Kind::Mark(mark), self.at);
        self.at += mark.len();
        Ok(())
    }

    fn close(&mut self, mark: &str) -> Result<(), Located> {
        let opening = match mark {
            ")" => b'(',
            "]" => b'[',
            _ => b'{',
        };
        match self.brackets.pop() {
            Some((open, _)) if open == opening => Ok(()),
            Some((open, _)) => Err(self.error(format!("'{mark}' does not close '{}'", char::from(open)))),
            None => Err(self.error(format!("'{mark}' closes nothing"))),
        }
    }
}
