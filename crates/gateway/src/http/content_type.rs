//! Content type and encoding of bodies.
//!
//! What is decided about a message is decided about its bytes, read as JSON in UTF-8. A server that reads them otherwise,
//! because of a header, reads another message: `+ACI-` is a quotation mark in UTF-7.

use http::{HeaderMap, HeaderValue, header};

/// Whether every server reads a message with these headers as we do. Without a type it is JSON, as MCP has it.
pub fn is_plain_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let plain = match (types.next(), types.next()) {
        (None, _) => true,
        (Some(type_), None) => type_.to_str().is_ok_and(is_utf8_json),
        (Some(_), Some(_)) => false,
    };
    plain && is_unencoded(headers)
}

/// Whether a body is not compressed.
pub fn is_unencoded(headers: &HeaderMap) -> bool {
    let identity = |value: &HeaderValue| {
        value.to_str().is_ok_and(|text| {
            text.split(',')
                .map(str::trim)
                .all(|text| text.is_empty() || text.eq_ignore_ascii_case("identity"))
        })
    };
    headers.get_all(header::CONTENT_ENCODING).iter().all(identity)
}

/// Whether a body is read as UTF-8, whatever it is.
pub fn is_utf8(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    types.all(|type_| type_.to_str().is_ok_and(|type_| has_utf8_charset(type_.split(';').skip(1))))
}

fn is_utf8_json(type_: &str) -> bool {
    // As most clients write it.
    if type_ == "application/json" {
        return true;
    }
    let mut parts = type_.split(';');
    let name = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let json = name == "application/json" || (name.starts_with("application/") && name.ends_with("+json"));
    json && has_utf8_charset(parts)
}

/// Whether these parameters name no other charset, wherever a parser could read one, also within quotes.
fn has_utf8_charset<'a>(parameters: impl Iterator<Item = &'a str>) -> bool {
    let parameters = parameters.map(|part| part.trim().to_ascii_lowercase());
    let mut charsets = parameters.filter(|part| part.starts_with("charset"));
    charsets.all(|charset| {
        let value = charset.split_once('=').map(|(_, value)| value.trim().trim_matches('"'));
        matches!(value, Some("utf-8" | "utf8" | "us-ascii"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn every_server_reads_a_message_as_json_in_utf8() {
        let of = |values: &[&str]| is_plain_json(&headers(header::CONTENT_TYPE, values));
        for good in [
            &[][..],
            &["application/json"],
            &["Application/JSON ; Charset=\"UTF-8\""],
            &["application/json;charset=utf8;x=y"],
            &["application/vnd.x+json"],
        ] {
            assert!(of(good), "{good:?}");
        }
        for wrong in [
            &["application/json; charset=utf-7"][..],
            &["application/json; charset = utf-16"],
            &["application/json; charset"],
            &["application/json; charset*=utf-8''utf-7"],
            &["application/json; charset=utf-8; charset=utf-7"],
            &["application/json; x=\"; charset=utf-7\""],
            &["application/json", "application/json"],
            &["text/plain"],
            &["application/x-www-form-urlencoded"],
            &["multipart/form-data; boundary=a"],
            &[""],
        ] {
            assert!(!of(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_compressed_body_is_not_unencoded() {
        let of = |values: &[&str]| is_unencoded(&headers(header::CONTENT_ENCODING, values));
        assert!(of(&[]) && of(&["identity"]) && of(&["Identity, "]));
        for wrong in [&["gzip"][..], &["identity, gzip"], &["identity", "br"], &["x-unknown"]] {
            assert!(!of(wrong), "{wrong:?}");
        }
    }
}
