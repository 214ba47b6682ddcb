//! Headers of a message: a policy that evaluates the body and a server that reads the headers see the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skep_mcp::{Envelope, Era, Header, Headers, Message, Method, SessionId, check_mirrors, era, header};

// Four lines and a body: the revision, the method, the name, the session.
fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(5, |byte| *byte == b'\n');
    let mut line = || parts.next().unwrap_or_default();
    let (version, method, name, session, body) = (line(), line(), line(), line(), line());
    if let Ok(id) = SessionId::parse(session) {
        assert_eq!(id.as_str().as_bytes(), session);
    }
    if let Some(decoded) = header::decoded_name(name) {
        let again = header::encoded_name(&decoded).into_owned();
        assert_eq!(header::decoded_name(again.as_bytes()).as_deref(), Some(&*decoded));
    }
    let headers = Headers { protocol_version: once(version), method: once(method), name: once(name) };
    let Ok(envelope) = Envelope::parse(body) else { return };
    if era(&headers, &envelope) != Ok(Era::Modern) || check_mirrors(&headers, &envelope, Era::Modern).is_err()
    {
        return;
    }
    // A request must have the header; wherever it is present, it equals the body.
    let request = matches!(envelope.message(), Message::Request { .. });
    if request || !method.is_empty() {
        assert_eq!(Some(method.trim_ascii()), envelope.method_name().as_deref().map(str::as_bytes));
    }
    let named = envelope.method().is_some_and(Method::requires_name_header);
    let decided = envelope.target().is_none_or(|target| target.kind.is_decided_on());
    if decided && (named && request || !name.is_empty()) {
        let in_header = header::decoded_name(name.trim_ascii());
        match envelope.target() {
            Some(target) => assert_eq!(in_header.as_deref(), Some(&*target.name())),
            None => assert!(!named || name.is_empty()),
        }
    }
});

fn once(value: &[u8]) -> Header<'_> {
    if value.is_empty() { Header::Absent } else { Header::of([value]) }
}
