//! Messages on standard input and output.

use proptest::prelude::*;
use similar_asserts::assert_eq;
use skep_mcp::{
    Envelope,
    stdio::{Line, Lines, framed},
};

fn text(line: &Line) -> String {
    match line {
        Line::Message(text) => format!("message {}", String::from_utf8_lossy(text)),
        Line::Noise(text) => format!("noise {}", String::from_utf8_lossy(text)),
        Line::TooLong => "too long".to_owned(),
    }
}

fn lines<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut lines = Lines::new(limit);
    let mut seen = Vec::new();
    for chunk in chunks {
        lines.feed(chunk);
        seen.extend(std::iter::from_fn(|| lines.line()).map(|line| text(&line)));
    }
    seen.extend(lines.rest().map(|line| text(&line)));
    seen
}

#[test]
fn messages_are_distinguished_from_noise_and_not_changed() {
    let output = "{\"a\":\"\u{a0}\u{200d}\u{7}\"}\n\n \t\r\nlistening on 7 {x}\n  {\"b\":1 }\r\n[1]\n\u{1b}[0m{\"c\":1}\n{\"last\":";
    assert_eq!(
        lines(100, [output.as_bytes()]),
        [
            "message {\"a\":\"\u{a0}\u{200d}\u{7}\"}",
            "noise listening on 7 {x}",
            "message   {\"b\":1 }",
            "noise [1]",
            "noise \u{1b}[0m{\"c\":1}",
            "message {\"last\":",
        ]
    );
}

#[test]
fn bytes_that_are_not_utf8_are_kept() {
    let mut lines = Lines::new(100);
    lines.feed(b"\xff\xfe\n");
    assert!(matches!(lines.line(), Some(Line::Noise(text)) if text == b"\xff\xfe"[..]));
}

#[test]
fn a_line_that_is_too_long_is_reported_once_and_the_next_one_is_read() {
    let long = "x".repeat(50);
    let output = format!("{{1}}\n{long}\n{{2}}\n");
    for size in [1, 3, 7, 60, 1000] {
        assert_eq!(
            lines(10, output.as_bytes().chunks(size)),
            ["message {1}", "too long", "message {2}"],
            "{size}"
        );
    }
    assert_eq!(lines(10, [long.as_bytes()]), ["too long"]);
    assert_eq!(lines(10, [&b"0123456789\n"[..]]), ["noise 0123456789"]);
}

#[test]
fn a_message_becomes_one_line() {
    let message = "{\r\n  \"jsonrpc\": \"2.0\",\n  \"method\": \"a\\nb\"\n}";
    let envelope = Envelope::parse(message.as_bytes()).unwrap();
    assert_eq!(
        String::from_utf8(framed(&envelope)).unwrap(),
        "{    \"jsonrpc\": \"2.0\",   \"method\": \"a\\nb\" }\n"
    );
}

#[test]
fn debug_output_contains_nothing_of_a_line() {
    let mut lines = Lines::new(100);
    lines.feed(b"{secret}\nsecret\n");
    assert_eq!(
        format!("{:?} {:?}", lines.line(), lines.line()),
        "Some(Message(8 bytes)) Some(Noise(6 bytes))"
    );
}

proptest! {
    #[test]
    fn lines_are_the_same_however_the_output_is_cut(
        output in "([{]?[a-zé ]{0,30}\r?\n){0,12}[{]?[a-z]{0,30}",
        size in 1..40_usize,
    ) {
        let whole = lines(20, [output.as_bytes()]);
        prop_assert_eq!(lines(20, output.as_bytes().chunks(size)), whole);
    }
}
