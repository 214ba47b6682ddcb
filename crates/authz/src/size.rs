//! The nesting depth of a policy, measured without parsing it.
//!
//! Cedar's parser and its JSON encoder are recursive and do not check the stack: a policy with a hundred
//! parentheses would abort the process that validates it, for all its users. So a text is measured before it
//! is parsed, rejected if it exceeds any reasonable size, and parsed on a stack that suffices for the rest.

use crate::Error;

/// How deep brackets and conditions may be nested.
const NESTING: usize = 64;
/// How many operators and brackets one policy may have.
const STEPS: usize = 2_000;
/// Stack for each of them in optimised code.
const OPTIMISED_FRAME: usize = 16 << 10;
/// Stack for each of them. Frames of unoptimised code are several times as large.
const FRAME: usize = if cfg!(debug_assertions) { 4 * OPTIMISED_FRAME } else { OPTIMISED_FRAME };
/// Stack that is needed in any case.
const BASE: usize = 256 << 10;
/// Stack for a decision of the largest policy, in optimised code. A thread with less of it gets another stack for each decision.
pub const LARGEST_STACK: usize = BASE + STEPS * OPTIMISED_FRAME;

/// Runs a function with the stack that so many steps need.
pub(crate) fn with_stack<R>(steps: usize, run: impl FnOnce() -> R) -> R {
    let stack = BASE + steps * FRAME;
    stacker::maybe_grow(stack, stack, run)
}

/// The largest number of steps in a policy of the text.
pub(crate) fn steps(path: &str, text: &str) -> Result<usize, Error> {
    let mut scan = Scan::default();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => string(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '&' | '|' => {
                scan.step();
                if rest[1..].starts_with(next) { 2 } else { 1 }
            }
            '(' | '[' | '{' => scan.open(),
            ')' | ']' | '}' => scan.close(),
            '.' | '+' | '-' | '*' | '!' => scan.step(),
            ';' => scan.end(),
            _ if next == '_' || next.is_ascii_alphanumeric() => {
                let word = word(rest);
                if word == "if" {
                    scan.condition();
                }
                word.len()
            }
            other => other.len_utf8(),
        };
        rest = &rest[length..];
        if scan.deepest > NESTING {
            let problem = format!("it nests deeper than {NESTING} levels: write several policies instead");
            return Err(Error::new(path, problem));
        }
        if scan.most > STEPS {
            let problem = format!(
                "it has more than {STEPS} operators: write several policies, or a set and `contains` instead"
            );
            return Err(Error::new(path, problem));
        }
    }
    Ok(scan.most)
}

#[derive(Default)]
struct Scan {
    open: usize,
    conditions: usize,
    steps: usize,
    deepest: usize,
    most: usize,
}

impl Scan {
    fn step(&mut self) -> usize {
        self.steps += 1;
        self.most = self.most.max(self.steps);
        1
    }

    fn open(&mut self) -> usize {
        self.open += 1;
        self.deepest = self.deepest.max(self.open + self.conditions);
        self.step()
    }

    fn close(&mut self) -> usize {
        self.open = self.open.saturating_sub(1);
        1
    }

    /// An `if` nests what follows, and has no closing bracket.
    fn condition(&mut self) {
        self.conditions += 1;
        self.deepest = self.deepest.max(self.open + self.conditions);
        self.step();
    }

    /// A policy ends with a semicolon, and no expression contains one.
    fn end(&mut self) -> usize {
        *self = Self { deepest: self.deepest, most: self.most, ..Self::default() };
        1
    }
}

/// The length of the string literal at the start of the text.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, character)| {
        let ends = *character == '"' && !escaped;
        escaped = *character == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

fn word(text: &str) -> &str {
    let end = text.find(|character: char| character != '_' && !character.is_ascii_alphanumeric());
    &text[..end.unwrap_or(text.len())]
}
