//! Messages in any spelling that JSON allows.

use proptest::prelude::*;

/// White space that JSON allows between tokens.
fn space() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"]
}

/// A string with its quotes: letters of many widths, and every kind of escape.
pub(crate) fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9 _./:-]{1,9}",
        1 => "[äß€漢🐝]{1,3}",
        1 => Just("\\n".to_owned()),
        1 => Just("\\\"".to_owned()),
        1 => Just("\\/".to_owned()),
        1 => Just("\\u0041".to_owned()),
        1 => Just("\\ud83d\\udc1d".to_owned()),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// Any value, in any spelling.
pub(crate) fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?",
        string(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let members = prop::collection::vec((string(), inner.clone()), 0..4);
        prop_oneof![
            (prop::collection::vec(inner, 0..4), space()).prop_map(|(items, space)| {
                format!("[{space}{}]", items.join(&format!("{space},{space}")))
            }),
            (members, space()).prop_map(|(members, space)| object(&members, &space)),
        ]
    })
}

/// An object with these members, and this white space wherever it may be.
pub(crate) fn object(members: &[(String, String)], space: &str) -> String {
    let members: Vec<_> =
        members.iter().map(|(key, value)| format!("{space}{key}{space}:{space}{value}")).collect();
    format!("{{{}{space}}}", members.join(&format!("{space},")))
}

/// An id.
pub(crate) fn id() -> impl Strategy<Value = String> {
    prop_oneof!["0|-?[1-9][0-9]{0,30}", string()]
}

/// A call of a tool: its members in any order, with unknown ones among them.
pub(crate) fn call() -> impl Strategy<Value = String> {
    (string(), value(), value(), id(), space())
        .prop_flat_map(|(name, arguments, unknown, id, space)| {
            let key = |key: &str| format!("\"{key}\"");
            let meta = vec![(key("progressToken"), "7".to_owned()), (key("x/y"), unknown.clone())];
            let params = vec![
                (key("name"), name),
                (key("arguments"), arguments),
                (key("_meta"), object(&meta, &space)),
                (key("x-unknown"), unknown.clone()),
            ];
            (Just(id), Just(unknown), Just(params).prop_shuffle(), Just(space))
        })
        .prop_flat_map(|(id, unknown, params, space)| {
            let key = |key: &str| format!("\"{key}\"");
            let top = vec![
                (key("jsonrpc"), "\"2.0\"".to_owned()),
                (key("id"), id),
                (key("method"), "\"tools/call\"".to_owned()),
                (key("params"), object(&params, &space)),
                (key("x-unknown"), unknown),
            ];
            (Just(top).prop_shuffle(), Just(space))
        })
        .prop_map(|(top, space)| format!("{space}{}{space}", object(&top, &space)))
}
