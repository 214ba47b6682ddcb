//! Words of identifiers and sentences, in the form in which they are compared.

use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use crate::stop_words;

/// The longest word, in bytes. What is longer is no word that a person searches for.
const LONGEST: usize = 64;

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// The terms of a text: its words in lower case, without their endings. An identifier has the terms of its parts, and that of
/// the whole where only its case or digits separate them: `GitHub` is `git`, `hub` and `github`.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for run in text.split(|character: char| !is_of_word(character)) {
        let run = run.trim_matches(is_apostrophe);
        if !run.is_empty() {
            add_run(run, &mut terms);
        }
    }
    terms
}

/// The words of a text as they are spelled, with identifiers split.
pub(crate) fn plain(text: &str) -> Vec<&str> {
    let runs = text.split(|character: char| !is_of_word(character)).filter(|run| !run.is_empty());
    runs.flat_map(parts).collect()
}

/// The same words without separators, endings or case, by which names are equal.
pub(crate) fn normalized_name(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether case separates the words of an identifier, as in `sendMail`.
pub(crate) fn is_camel_case(word: &str) -> bool {
    let kinds: Vec<Kind> = word.chars().map(Kind::of).collect();
    kinds.windows(2).any(|pair| pair == [Kind::Lower, Kind::Upper])
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || is_apostrophe(character)
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '’')
}

fn add_run(run: &str, terms: &mut Vec<String>) {
    // "user's" and "don't" are words that an ending follows.
    let run = match run.char_indices().find(|(_, character)| is_apostrophe(*character)) {
        Some((index, _)) => &run[..index],
        None => run,
    };
    let parts = parts(run);
    if let [part] = &parts[..] {
        add_word(part, terms);
        return;
    }
    for part in &parts {
        if part.chars().any(char::is_alphabetic) && part.chars().count() > 1 {
            add_word(part, terms);
        }
    }
    add_word(run, terms);
}

/// The parts of an identifier that case, digits or scripts separate: `HTTPServer2` is `HTTP`, `Server` and `2`.
fn parts(run: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = run.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for place in 1..characters.len() {
        let (index, current) = characters[place];
        let before = Kind::of(characters[place - 1].1);
        let next = characters.get(place + 1).map(|(_, character)| Kind::of(*character));
        let is_boundary = match (before, Kind::of(current)) {
            (Kind::Upper, Kind::Upper) => next == Some(Kind::Lower),
            (Kind::Upper, Kind::Lower) => false,
            (before, current) => before != current,
        };
        if is_boundary {
            parts.push(&run[start..index]);
            start = index;
        }
    }
    parts.push(&run[start..]);
    parts
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    /// A script that writes words without spaces between them.
    Unspaced,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            _ if character.is_numeric() => Self::Digit,
            _ if is_unspaced(character) => Self::Unspaced,
            _ if character.is_uppercase() => Self::Upper,
            _ => Self::Lower,
        }
    }
}

fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn add_word(word: &str, terms: &mut Vec<String>) {
    let lower = word.to_lowercase();
    if lower.len() > LONGEST && !lower.chars().all(is_unspaced) || stop_words::contains(&lower) {
        return;
    }
    if lower.chars().next().is_some_and(is_unspaced) {
        add_pairs(&lower, terms);
    } else if lower.is_ascii() {
        terms.push(STEMMER.stem(&lower).into_owned());
    } else {
        terms.push(lower);
    }
}

/// Where words are not separated, pairs of characters are compared.
fn add_pairs(text: &str, terms: &mut Vec<String>) {
    let characters: Vec<char> = text.chars().collect();
    if let [only] = characters[..] {
        terms.push(only.into());
    }
    terms.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_split_however_it_is_spelled() {
        for (text, expected) in [
            ("send_mail", &["send", "mail"][..]),
            ("send-mail.now", &["send", "mail", "now"]),
            ("sendMail", &["send", "mail", "sendmail"]),
            ("HTTPProxy", &["http", "proxi", "httpproxi"]),
            ("parseJSON", &["pars", "json", "parsejson"]),
            ("convert_mp3", &["convert", "mp", "mp3"]),
            ("GitHub issues", &["git", "hub", "github", "issu"]),
            ("Brewing machines", &["brew", "machin"]),
            ("the user's mailbox", &["user", "mailbox"]),
            ("Übersetzung ÖFFNEN", &["übersetzung", "öffnen"]),
            ("搜索结果", &["搜索", "索结", "结果"]),
            ("  --__ ''  ", &[]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_equal_whatever_separates_their_words() {
        let names = ["sendMail", "send_mail", "SEND-MAIL", "send.mail"].map(normalized_name);
        assert!(names.iter().all(|name| name == "sendmail"));
    }
}
