//! The data of the page.

mod events;

use http::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use skep_gateway::{
    http::{Body, response},
    middleware::Traffic,
};

use crate::{
    Console, Key,
    console::{error, not_found},
    objects::{Detail, Summary},
};

/// The response to a request for `/api/{path}`.
pub(crate) fn respond<B>(console: &Console, path: &str, request: &Request<B>) -> Response<Body> {
    if request.method() != Method::GET {
        return error(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET");
    }
    match path {
        "session" => json_of(&json!({
            "mode": "local", "user": "", "version": env!("CARGO_PKG_VERSION"), "links": [],
        })),
        "objects" => overview(console),
        "events" => events::stream(console, request.uri().query().unwrap_or_default()),
        _ => match path.strip_prefix("objects/").and_then(Key::in_path) {
            Some(key) => detail(console, &key),
            None => not_found(),
        },
    }
}

/// A line of the overview.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    traffic: Option<Traffic>,
}

fn overview(console: &Console) -> Response<Body> {
    let objects = console.objects.all();
    let line = |summary| Line { summary, traffic: None };
    let lines: Vec<Line<'_>> = objects
        .iter()
        .map(|object| Line { traffic: console.calls.traffic(&object.key), ..line(&object.summary) })
        .collect();
    json_of(&json!({"objects": lines}))
}

fn detail(console: &Console, key: &Key) -> Response<Body> {
    let Some(object) = console.objects.find(key) else { return not_found() };
    let visible = console.objects.all();
    let mut detail = Detail::new(&object, &visible);
    if let Some(log) = console.calls.find(key) {
        detail.traffic = Some(log.traffic());
        detail.calls = log.last();
        detail.calls.reverse();
    }
    json_of(&detail)
}

fn json_of(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_string(value) {
        Ok(text) => response::json(StatusCode::OK, text),
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be written as JSON"),
    }
}
