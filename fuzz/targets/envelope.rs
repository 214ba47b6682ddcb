//! A message: parsing any bytes does not panic, and gives the same result as any other parser.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;
use skep_mcp::{Edits, Envelope, Id, Json, List, Message, OwnedEnvelope, TargetKind, Verdict, filtered};

fuzz_target!(|bytes: &[u8]| {
    let rejected = Id::of_rejected(bytes);
    let Ok(envelope) = Envelope::parse(bytes) else { return };
    let owned = OwnedEnvelope::of(&envelope, &bytes.to_vec().into()).expect("it is a message");
    let again = owned.envelope().expect("it is the same message");
    assert_eq!(again.message(), envelope.message());
    assert_eq!(again.params(), envelope.params());
    assert_eq!(again.arguments(), envelope.arguments());
    assert_eq!(again.target().map(|target| target.raw), envelope.target().map(|target| target.raw));
    serde_json::from_slice::<IgnoredAny>(bytes).expect("what is accepted is JSON");
    // Numbers that serde_json cannot represent are left to the server.
    let Ok(read) = serde_json::from_slice::<Value>(bytes) else { return };
    let id = envelope.id().and_then(|id| serde_json::from_str::<Value>(id.raw().as_str()).ok());
    assert_eq!(read.get("id").filter(|id| !id.is_null()), id.as_ref());
    if let (Some(rejected), Some(id)) = (rejected, envelope.id()) {
        assert_eq!(rejected.raw().as_str(), id.raw().as_str(), "a rejection has the id of the same request");
    }
    assert_eq!(read.get("method").and_then(Value::as_str), envelope.method_name().as_deref());
    if let Message::Request { .. } | Message::Notification { .. } = envelope.message() {
        let arguments = envelope.arguments().and_then(|raw| serde_json::from_str::<Value>(raw.as_str()).ok());
        if let Some(arguments) = &arguments {
            assert_eq!(read.pointer("/params/arguments"), Some(arguments));
        }
        if let Ok(Some(judged)) = envelope.unambiguous_arguments() {
            assert_eq!(Some(&judged), arguments.as_ref(), "what is judged is what is sent");
        }
        if let Ok(uris) = envelope.subscribed_resources() {
            let sent = read.pointer("/params/notifications/resourceSubscriptions").and_then(Value::as_array);
            let sent: Vec<&str> = sent.into_iter().flatten().filter_map(Value::as_str).collect();
            assert_eq!(uris, sent, "what is judged is what is sent");
        }
        if let Ok(named) = envelope.references() {
            for (kind, name) in named {
                let key = if kind == TargetKind::Prompt { "name" } else { "uri" };
                let sent = read.pointer("/params/ref").and_then(|reference| reference[key].as_str());
                assert_eq!(Some(&*name), sent, "what is judged is what is sent");
            }
        }
        // Another id, and nothing else.
        if let Some(id) = envelope.id()
            && let Ok(changed) = Edits::of(bytes).replace(id.raw(), Json::Text("another")).bytes()
        {
            let mut expected = read.clone();
            expected["id"] = "another".into();
            assert_eq!(serde_json::from_slice::<Value>(&changed).ok(), Some(expected));
        }
    }
    for list in [List::Tools, List::Prompts, List::Resources, List::ResourceTemplates] {
        let all = filtered(bytes, list, |_| Verdict::Keep);
        assert!(all.is_err() || all.is_ok_and(|all| *all == *bytes), "what is kept stays byte for byte");
        if let Ok(none) = filtered(bytes, list, |_| Verdict::Drop) {
            let nothing = |_: &_| panic!("an item was dropped, and is still there");
            filtered(&none, list, nothing).expect("it is still a response");
        }
    }
});
