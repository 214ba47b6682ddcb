//! Requests and responses on the engine's socket.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
};

use base64::{Engine, engine::general_purpose::URL_SAFE};
use serde_json::{Value, json};

pub(super) struct Request {
    pub(super) method: String,
    /// Without the version of the API.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) body: Value,
    /// The credentials of a registry.
    pub(super) auth: Option<Value>,
}

impl Request {
    /// The one request of a connection, unless it ends before.
    pub(super) fn read(stream: &UnixStream) -> Option<Self> {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        let (mut length, mut auth) = (0, None);
        while reader.read_line(&mut head).unwrap_or(0) > 2 {
            let last = head.lines().last().unwrap_or_default();
            if let Some((name, value)) = last.split_once(": ")
                && name.eq_ignore_ascii_case("x-registry-auth")
            {
                auth = Some(serde_json::from_slice(&URL_SAFE.decode(value.trim()).unwrap()).unwrap());
            }
            let line = last.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut words = head.split_whitespace();
        let (method, target) = (words.next()?, words.next()?);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let path = target.strip_prefix("/v1.47").unwrap_or(target);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        Some(Self {
            method: method.into(),
            path: path.into(),
            query: query.into(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
            auth,
        })
    }
}

pub(super) fn respond(mut stream: UnixStream, status: &str, body: &str) {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\napi-version: 1.47\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok();
}

pub(super) fn respond_error(stream: UnixStream, status: &str, message: &str) {
    respond(stream, status, &json!({"message": message}).to_string());
}

/// A parameter of a query, decoded.
pub(super) fn parameter(query: &str, name: &str) -> String {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next().unwrap_or_default();
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}
