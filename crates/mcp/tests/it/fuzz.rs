//! Random and broken bytes: nothing panics, and what is accepted means the same to serde_json and to a server that
//! ignores the case of keys.

use std::fmt;

use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};
use skep_mcp::{Envelope, Id, List, Message, Verdict, filtered, sse, stdio};

use crate::arbitrary;

/// The members of an object in order, with those that occur twice.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Members {
    /// The value of this key for a server that ignores case, as Go's encoding/json does. It must be unique.
    fn get_ignoring_case(&self, key: &str) -> Option<&RawValue> {
        let fold = |key: &str| key.to_lowercase().replace('ſ', "s").replace('\u{212a}', "k");
        let fits: Vec<_> = self.0.iter().filter(|(name, _)| fold(name) == fold(key)).collect();
        assert!(fits.len() < 2, "{key} occurs {} times", fits.len());
        fits.first().map(|(_, value)| &**value)
    }
}

fn agrees(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(envelope) = Envelope::parse(bytes) else { return Ok(()) };
    // serde_json accepts it, without checking the ranges of numbers and the halves of surrogates.
    prop_assert!(serde_json::from_slice::<IgnoredAny>(bytes).is_ok());
    let top: Members = serde_json::from_slice(bytes).unwrap();
    let read = |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let id = envelope.id().map(|id| serde_json::from_str::<Value>(id.raw().as_str()).ok());
    prop_assert_eq!(read(top.get_ignoring_case("id")).filter(|id| !id.is_null()), id.flatten());
    let method = envelope.method_name().map(Value::from);
    prop_assert_eq!(read(top.get_ignoring_case("method")), method);
    if let Message::Response { .. } = envelope.message() {
        return Ok(());
    }
    let Some(params) = top.get_ignoring_case("params").filter(|params| params.get() != "null") else {
        prop_assert!(envelope.params().is_none() && envelope.target().is_none());
        return Ok(());
    };
    prop_assert_eq!(Some(params.get()), envelope.params().map(|params| params.as_str()));
    let params: Members = serde_json::from_str(params.get()).unwrap();
    let key = match envelope.method_name().as_deref() {
        Some("tools/call" | "prompts/get") => "name",
        Some("resources/read" | "resources/subscribe" | "resources/unsubscribe") => "uri",
        Some("tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel") => "taskId",
        _ => return Ok(()),
    };
    let target = envelope.target().map(|target| Value::from(target.name()));
    prop_assert_eq!(read(params.get_ignoring_case(key)), target);
    let arguments = envelope.arguments().map(|arguments| arguments.as_str());
    prop_assert_eq!(params.get_ignoring_case("arguments").map(|arguments| arguments.get()), arguments);
    Ok(())
}

/// Calls every function that parses bytes: none may panic.
fn survives(bytes: &[u8]) {
    Id::of_rejected(bytes);
    for list in [List::Tools, List::Prompts, List::Resources, List::ResourceTemplates] {
        let _ = filtered(
            bytes,
            list,
            |item| if item.name().len() % 2 == 0 { Verdict::Keep } else { Verdict::Drop },
        );
    }
    let mut decoder = sse::Decoder::new(64);
    decoder.feed(bytes);
    while let Ok(Some(frame)) = decoder.frame() {
        if let sse::Frame::Event(event) = frame {
            event.with_data(bytes);
        }
    }
    let mut lines = stdio::Lines::new(64);
    lines.feed(bytes);
    while lines.line().is_some() {}
}

/// Pieces that matter to the scanner, to be put anywhere.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "null",
    "0",
    "-",
    "1e5",
    " ",
    "\u{feff}",
    "\0",
    "é",
    "\"name\":\"b\",",
    "\"Name\":\"b\",",
    "\"n\\u0061me\":\"b\",",
    "\"params\":{},",
    "\"paramſ\":{},",
    "\"id\":2,",
    "\"ID\":2,",
    "\"method\":\"ping\",",
    "\"result\":{},",
    "\"_meta\":{},",
    "\"taskId\":\"t\",",
    "\"taſkId\":\"t\",",
    "\"uri\":\"u\",",
    "\"arguments\":1,",
    "tools/call",
    "resources/read",
    "tasks/get",
];

fn broken() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![
        arbitrary::call().prop_map(String::into_bytes),
        Just(br#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}"#.to_vec()),
        Just(br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"b"}]}}"#.to_vec()),
        Just(br#"{"jsonrpc":"2.0","method":"resources/read","params":{"uri":"u","_meta":{}}}"#.to_vec()),
    ];
    let change = (any::<prop::sample::Index>(), 0..6_usize, prop::option::of(prop::sample::select(PIECES)));
    (start, prop::collection::vec((change, any::<u8>()), 0..5)).prop_map(|(mut bytes, changes)| {
        for ((at, cut, piece), byte) in changes {
            let at = at.index(bytes.len() + 1);
            let end = (at + cut).min(bytes.len());
            match piece {
                Some(piece) => drop(bytes.splice(at..at, piece.bytes())),
                None if cut == 0 => bytes.insert(at, byte),
                None => drop(bytes.drain(at..end)),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn broken_messages_are_rejected_or_unambiguous(bytes in broken()) {
        survives(&bytes);
        agrees(&bytes)?;
    }

    #[test]
    fn random_pieces_are_rejected_or_unambiguous(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
    ) {
        let inside = pieces.concat();
        for message in [
            inside.clone(),
            format!(r#"{{{inside}"jsonrpc":"2.0","method":"tools/call"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{inside}"x":0}}}}"#),
        ] {
            survives(message.as_bytes());
            agrees(message.as_bytes())?;
        }
    }
}
