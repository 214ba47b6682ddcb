//! The page that asks the user.

use std::fmt::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};

use super::style::STYLE;
use crate::{response, rules::Uri};

/// What the user decides about.
pub(crate) struct Question<'a> {
    /// The name that the client gave itself.
    pub(crate) client_name: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) scopes: &'a [String],
    pub(crate) resources: &'a [String],
    /// Where the user logs in, unless that has happened.
    pub(crate) upstreams: Vec<&'a str>,
    /// Where the form is sent. The page is also shown below the path of the resource, where a callback may be.
    pub(crate) action: String,
    /// Hidden fields of the form.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// The page that asks.
pub(crate) fn page(question: &Question<'_>) -> Response<Bytes> {
    document("Allow access?", &body(question))
}

/// A page. It needs no script and loads nothing. Its policy has no `form-action`: browsers apply that to the addresses to
/// which the response to the form leads, and these are the upstream's and the client's.
pub(super) fn document(title: &str, body: &str) -> Response<Bytes> {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    let policy =
        format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; frame-ancestors 'none'");
    let type_ = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    let html = format!(
        r#"<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>"#
    );
    let headers = [
        type_,
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
    ];
    let mut response = response::with(StatusCode::OK, headers, html);
    if let Ok(policy) = HeaderValue::try_from(policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn body(question: &Question<'_>) -> String {
    let name = match question.client_name.trim() {
        "" => "an application".to_owned(),
        name => isolated(name),
    };
    let target = Uri::parse(question.redirect_uri);
    let place = match target {
        Some(uri) if uri.is_loopback() => "a program on this computer".to_owned(),
        Some(uri) if !uri.host.is_empty() => isolated(uri.host),
        _ => "an application on this device".to_owned(),
    };
    // The address of its document is what is known of such a client for sure.
    let identity = match Uri::parse(question.client_id) {
        Some(uri) if uri.is("https") => format!("<dt>Described by</dt><dd>{}</dd>", isolated(uri.host)),
        _ => "<dt>Identity</dt><dd>It chose its name itself; nothing proves it.</dd>".to_owned(),
    };
    let items = |texts: Vec<String>| texts.iter().map(|text| format!("<li>{text}</li>")).collect::<String>();
    let mut abilities: Vec<String> = question.scopes.iter().map(|scope| ability(scope)).collect();
    abilities.extend(question.resources.iter().map(|resource| format!("use {} as you", isolated(resource))));
    let logins = match &*question.upstreams {
        [] => String::new(),
        names => {
            let names = names.iter().map(|name| escaped(name)).collect::<Vec<_>>().join(", then ");
            format!("<dt>Next, you log in at</dt><dd>{names}</dd>")
        }
    };
    let fields: Vec<(&str, &str)> = question.fields.iter().map(|(name, value)| (*name, &**value)).collect();
    let fields = hidden(&fields);
    format!(
        r#"<h1>Allow {name} to act for you?</h1><dl>{identity}<dt>It is sent back to</dt><dd><strong>{place}</strong><br>{}</dd><dt>It may</dt><dd><ul>{}</ul></dd>{logins}</dl><p class="quiet">If you did not start this yourself, deny it.</p><form method="post" action="{}">{fields}<button name="decision" value="deny">Deny</button><button name="decision" value="allow">Allow</button></form>"#,
        isolated(question.redirect_uri),
        items(abilities),
        escaped(&question.action),
    )
}

/// What a scope lets a client do.
fn ability(scope: &str) -> String {
    match scope {
        "openid" => "know who you are".into(),
        "profile" => "read your name".into(),
        "email" => "read your email address".into(),
        "offline_access" | "offline" => "keep its access until you end it".into(),
        other => format!("have the permission {}", isolated(other)),
    }
}

/// Hidden fields of a form.
pub(super) fn hidden(fields: &[(&str, &str)]) -> String {
    let field = |(name, value): &(&str, &str)| {
        format!(r#"<input type="hidden" name="{name}" value="{}">"#, escaped(value))
    };
    fields.iter().map(field).collect()
}

/// A text of others. What its reader could not see could make one name or address look like another, so its code is shown.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // It chooses between two looks of the character before it.
            '\u{fe0e}' | '\u{fe0f}' => {}
            character if is_invisible(character) => {
                write!(escaped, "⟨U+{:04X}⟩", u32::from(character)).ok();
            }
            character => escaped.push(character),
        }
    }
    escaped
}

/// A text of others in the middle of one of ours, which it cannot reorder.
fn isolated(text: &str) -> String {
    format!("<bdi>{}</bdi>", escaped(text))
}

/// Whether a character has no shape of its own: what controls a text or reorders it, separators of lines, blanks that are no spaces, and
/// what Unicode lets a font leave out (`Default_Ignorable_Code_Point`).
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_put_markup_on_the_page() {
        let evil = "\"><script>alert(1)</script>";
        let question = Question {
            client_name: evil,
            client_id: evil,
            redirect_uri: "https://evil.example/cb?<img>",
            scopes: &[evil.to_owned()],
            resources: &[],
            upstreams: vec!["alpha"],
            action: "https://as.example/oauth/consent".into(),
            fields: vec![("request", evil.to_owned())],
        };
        let response = page(&question);
        let text = String::from_utf8(response.body().to_vec()).unwrap();
        assert!(!text.contains("<script") && !text.contains("<img"), "{text}");
        assert!(text.contains("evil.example") && text.contains("Next, you log in at"));
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
    }

    #[test]
    fn a_client_cannot_name_itself_in_a_way_that_its_user_cannot_see() {
        for character in [
            '\u{0}',
            '\n',
            '\u{7f}',
            '\u{85}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe00}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fffb}',
            '\u{1d173}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            let shown = escaped(&format!("Claude{character}"));
            assert_eq!(shown, format!("Claude⟨U+{:04X}⟩", u32::from(character)));
        }
        assert_eq!(escaped("Zoë ❤\u{fe0f} שלום 日本"), "Zoë ❤ שלום 日本");
        assert_eq!(isolated("שלום"), "<bdi>שלום</bdi>");
    }
}
