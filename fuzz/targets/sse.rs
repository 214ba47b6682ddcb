//! A stream of events: however it is split, the same events are parsed, and no byte is lost.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skep_mcp::sse::{Decoder, Frame};

const LIMIT: usize = 4096;

/// The events of a stream in pieces of these lengths, over and over: what they are, and all their bytes.
fn read(stream: &[u8], lengths: &[usize]) -> Option<(Vec<(Option<Vec<u8>>, Option<Vec<u8>>)>, Vec<u8>)> {
    let mut decoder = Decoder::new(LIMIT);
    let (mut events, mut raw, mut rest) = (Vec::new(), Vec::new(), stream);
    for length in lengths.iter().cycle() {
        let (piece, later) = rest.split_at((*length).min(rest.len()));
        decoder.feed(piece);
        while let Some(frame) = decoder.frame().ok()? {
            assert!(frame.raw().len() <= LIMIT + 2);
            raw.extend_from_slice(frame.raw());
            if let Frame::Event(event) = frame {
                events.push((event.kind().map(<[u8]>::to_vec), event.data().map(|data| data.to_vec())));
            }
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    raw.extend_from_slice(&decoder.rest());
    Some((events, raw))
}

fuzz_target!(|input: (Vec<u8>, u8, u8)| {
    let (stream, first, second) = input;
    let whole = read(&stream, &[stream.len().max(1)]);
    if let Some((_, raw)) = &whole {
        assert_eq!(*raw, stream, "not a byte is lost");
    }
    let pieces = [usize::from(first) + 1, usize::from(second) + 1];
    assert_eq!(read(&stream, &pieces), whole, "where a stream is split makes no difference");
});
