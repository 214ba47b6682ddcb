//! Server-sent events.

use proptest::prelude::*;
use similar_asserts::assert_eq;
use skep_mcp::sse::{Decoder, Event, Frame, TooLong, encoded};

const LIMIT: usize = 1 << 20;

/// What a stream consists of, and what is left of it.
fn frames<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Frame>, Vec<u8>) {
    let mut decoder = Decoder::new(LIMIT);
    let mut frames = Vec::new();
    for chunk in chunks {
        decoder.feed(chunk);
        while let Some(frame) = decoder.frame().unwrap() {
            frames.push(frame);
        }
    }
    (frames, decoder.rest().to_vec())
}

fn events(frames: &[Frame]) -> Vec<&Event> {
    frames
        .iter()
        .filter_map(|frame| if let Frame::Event(event) = frame { Some(event) } else { None })
        .collect()
}

type Fields = (Option<String>, Option<String>, Option<String>, Option<u64>);

fn fields(event: &Event) -> Fields {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (event.kind().map(text), event.data().map(|data| text(data)), event.id().map(text), event.retry())
}

fn data(stream: &str) -> Vec<Option<String>> {
    events(&frames([stream.as_bytes()]).0).iter().map(|event| fields(event).1).collect()
}

#[test]
fn events_are_parsed_as_the_html_standard_requires() {
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), [some("YHOO\n+2\n10")]);
    assert_eq!(data("data\n\ndata\ndata\n\ndata:"), [some(""), some("\n")]);
    assert_eq!(
        data("data:test\n\ndata: test\n\ndata:  test\n\n"),
        [some("test"), some("test"), some(" test")]
    );
    assert_eq!(data(": x\ndata: a\n: y\ndata:b\n\n"), [some("a\nb")]);
    assert_eq!(data("id: 1\n\nunknown: a\nDATA: a\n\n"), [None, None]);
    assert_eq!(data("data: a\rdata: b\r\ndata: c\n\r\ndata: d\r\r"), [some("a\nb\nc"), some("d")]);
    assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), [some("a"), None]);
    assert_eq!(data("data: a\n"), []);
}

#[test]
fn events_have_a_type_an_id_and_a_time() {
    let of = |stream: &str| fields(events(&frames([stream.as_bytes()]).0)[0]);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        of("event: message\nid: 7/1\nretry: 1500\ndata: x\n\n"),
        (some("message"), some("x"), some("7/1"), Some(1500))
    );
    assert_eq!(
        of("event: a\nevent: b\nid: 1\nid\nretry: 1\nretry: 2x\n\n"),
        (some("b"), None, some(""), Some(1))
    );
    assert_eq!(of("id: a\0b\nretry:\nretry: 99999999999999999999999\n\n"), (None, None, None, None));
}

#[test]
fn comments_between_events_are_returned_at_once() {
    let mut decoder = Decoder::new(LIMIT);
    decoder.feed(b":\r\n");
    assert_eq!(decoder.frame().unwrap().unwrap().raw(), &b":\r\n"[..]);
    decoder.feed(b"data: a\n: in between\n");
    assert_eq!(decoder.frame(), Ok(None));
    decoder.feed(b"\n\n");
    assert_eq!(decoder.frame().unwrap().unwrap().raw(), &b"data: a\n: in between\n\n"[..]);
    assert!(matches!(decoder.frame(), Ok(Some(Frame::Comment(raw))) if raw == b"\n"[..]));
}

#[test]
fn an_event_that_ends_in_cr_does_not_wait() {
    let mut decoder = Decoder::new(LIMIT);
    decoder.feed(b"data: a\r\n\r");
    assert!(matches!(decoder.frame(), Ok(Some(Frame::Event(_)))));
    decoder.feed(b"\n");
    assert_eq!(decoder.frame(), Ok(None));
    decoder.feed(b"data: b\r\r");
    let frame = decoder.frame().unwrap().unwrap();
    assert_eq!(frame.raw(), &b"\ndata: b\r\r"[..]);
    assert_eq!(fields(events(&[frame])[0]).1.as_deref(), Some("b"));
}

#[test]
fn an_event_that_is_too_long_ends_the_stream_and_takes_no_memory() {
    for stream in [
        &b"data: 0123456789\n\n"[..],
        b"data: 0123456789abcdef",
        b": 0123456789abcdef\n",
        b"a\na\na\na\na\na\na\n",
    ] {
        let mut decoder = Decoder::new(12);
        decoder.feed(b"data: 01234\n\n".get(..12).unwrap());
        assert_eq!(decoder.frame(), Ok(None));
        let mut decoder = Decoder::new(12);
        decoder.feed(b"data: 0123\n\n");
        assert!(matches!(decoder.frame(), Ok(Some(Frame::Event(_)))), "as long as is allowed");
        decoder.feed(stream);
        for _ in 0..2 {
            assert_eq!(decoder.frame(), Err(TooLong { limit: 12 }));
            decoder.feed(b"data: a\n\n");
        }
        assert_eq!(decoder.rest().len(), 0);
    }
}

#[test]
fn a_chunk_with_many_events_may_be_longer_than_the_limit_of_one() {
    let mut decoder = Decoder::new(16);
    decoder.feed(&b"data: a\n\n".repeat(100));
    let count = std::iter::from_fn(|| decoder.frame().unwrap()).count();
    assert_eq!(count, 100);
}

#[test]
fn data_is_replaced_and_other_lines_stay() {
    for (event, data, expected) in [
        ("id: 1\r\ndata: a\r\n: c\r\ndata: b\r\nevent: e\r\n\r\n", "x", "id: 1\ndata: x\n: c\nevent: e\n\n"),
        ("id: 1\n\n", "x", "id: 1\ndata: x\n\n"),
        ("data: a\r\r", "x\ny", "data: x\ndata: y\n\n"),
        ("\u{feff}data: a\n\n", "x", "\u{feff}data: x\n\n"),
        ("data: a\n: c\rdata: b\n\n", "x", "data: x\n: c\n\n"),
        ("data\n\n", "", "data: \n\n"),
    ] {
        let (frames, _) = frames([event.as_bytes()]);
        let sent = events(&frames)[0].with_data(data.as_bytes());
        assert_eq!(String::from_utf8(sent.to_vec()).unwrap(), expected, "{event:?}");
    }
}

#[test]
fn messages_are_sent_as_events() {
    assert_eq!(encoded("message", b"{\"a\":1}"), &b"event: message\ndata: {\"a\":1}\n\n"[..]);
    assert_eq!(
        encoded("message", b"{\r\n\"a\":\n1}\r"),
        &b"event: message\ndata: {\ndata: \"a\":\ndata: 1}\ndata: \n\n"[..]
    );
    assert_eq!(
        encoded("endpoint", b"/messages?session_id=1"),
        &b"event: endpoint\ndata: /messages?session_id=1\n\n"[..]
    );
}

#[test]
fn debug_output_contains_nothing_of_an_event() {
    let (frames, _) = frames([&b"id: secret\ndata: secret\n\n"[..]]);
    assert_eq!(format!("{frames:?}"), "[Event(Event(25 bytes))]");
}

/// Streams of lines that matter, with ends of every kind.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        "", "", "", "data: a", "data:b", "data", ": c", ":", "id: 1", "event: e", "retry: 5", "é",
        "\u{feff}", "da",
    ]);
    let end = prop::sample::select(vec!["\n", "\n", "\r\n", "\r\n", "\r", ""]);
    (prop::bool::ANY, prop::collection::vec((line, end), 0..24)).prop_map(|(mark, lines)| {
        let mut stream = if mark { "\u{feff}".to_owned() } else { String::new() };
        lines.iter().for_each(|(line, end)| stream.extend([*line, *end]));
        stream.into_bytes()
    })
}

fn chunks(stream: &[u8], cuts: Vec<prop::sample::Index>) -> Vec<&[u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn events_are_the_same_however_the_stream_is_cut(
        stream in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (whole, _) = frames([stream.as_slice()]);
        let bytes: Vec<_> = stream.chunks(1).collect();
        for chunks in [vec![stream.as_slice()], bytes, chunks(&stream, cuts)] {
            let (frames, rest) = frames(chunks);
            let read = |frames| events(frames).into_iter().map(fields).collect::<Vec<_>>();
            prop_assert_eq!(read(&frames), read(&whole));
            let mut raw: Vec<u8> = frames.iter().flat_map(|frame| frame.raw().to_vec()).collect();
            raw.extend(rest);
            prop_assert_eq!(&raw, &stream, "no byte is lost or added");
        }
    }

    #[test]
    fn what_is_sent_is_what_is_received(payload in "[a-z \u{e9}\n]{0,40}") {
        let sent = encoded("message", payload.as_bytes());
        let (frames, rest) = frames([sent.as_ref()]);
        prop_assert!(rest.is_empty());
        prop_assert_eq!(frames.len(), 1);
        prop_assert_eq!(fields(events(&frames)[0]), (Some("message".to_owned()), Some(payload), None, None));
    }

    #[test]
    fn replaced_data_is_the_data_and_nothing_else_changes(
        stream in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        payload in "[a-z\n]{0,20}",
        replaced: u8,
    ) {
        let (received, rest) = frames(chunks(&stream, cuts));
        let mut sent = Vec::new();
        let mut expected = Vec::new();
        for frame in &received {
            match frame {
                Frame::Event(event) if replaced & (1 << (expected.len() % 8)) != 0 => {
                    let (kind, _, id, retry) = fields(event);
                    expected.push((kind, Some(payload.clone()), id, retry));
                    sent.extend(event.with_data(payload.as_bytes()));
                }
                Frame::Event(event) => {
                    expected.push(fields(event));
                    sent.extend(event.raw());
                }
                Frame::Comment(raw) => sent.extend(raw),
            }
        }
        sent.extend(&rest);
        let again = frames([sent.as_slice()]).0;
        prop_assert_eq!(events(&again).into_iter().map(fields).collect::<Vec<_>>(), expected);
    }
}
