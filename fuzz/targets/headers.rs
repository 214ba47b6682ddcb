//! Headers beside a message: a policy that goes by the body and a server that goes by the headers see the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skep_mcp::{Envelope, Era, Header, Headers, SessionId, era, header, mirrored};

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
    if era(&headers, &envelope) != Ok(Era::Modern) || mirrored(&headers, &envelope).is_err() {
        return;
    }
    assert_eq!(method.trim_ascii(), envelope.method_name().unwrap_or_default().as_bytes());
    if let Some(target) = envelope.target() {
        let said = header::decoded_name(name.trim_ascii());
        assert_eq!(said.as_deref(), Some(&*target.name()));
    }
});

fn once(value: &[u8]) -> Header<'_> {
    if value.is_empty() { Header::Absent } else { Header::of([value]) }
}
