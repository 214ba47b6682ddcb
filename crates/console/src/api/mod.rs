//! The data of the page.

mod events;

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use skep_gateway::{http::Body, middleware::Traffic};

use crate::{
    Console, Endpoint, Key,
    access::Viewer,
    objects::{Detail, Object, Summary},
    responses::{error, json_of, not_found},
};

/// The response of an endpoint; `object` is the rest of the path.
pub(crate) async fn respond<B>(
    console: &Console,
    viewer: Viewer,
    endpoint: Endpoint,
    object: &str,
    request: &Request<B>,
) -> Response<Body> {
    if request.method() != Method::GET {
        return error(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET");
    }
    match endpoint {
        Endpoint::Session => json_of(&json!({
            "mode": console.access.mode(), "user": viewer.name(), "version": env!("CARGO_PKG_VERSION"),
            "links": console.links.of_all(),
        })),
        Endpoint::Objects => overview(console, &viewer).await,
        Endpoint::Events => events::stream(console, viewer, request.uri().query().unwrap_or_default()),
        Endpoint::Object => match Key::in_path(object) {
            Some(key) => detail(console, &viewer, &key).await,
            None => not_found(),
        },
        Endpoint::Login | Endpoint::Mcp | Endpoint::Sessions | Endpoint::SessionsOf | Endpoint::ClientsOf => {
            not_found()
        }
    }
}

/// A line of the overview.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    traffic: Option<Traffic>,
}

async fn overview(console: &Console, viewer: &Viewer) -> Response<Body> {
    let objects = viewer.visible(console.objects.all()).await;
    let line = |object: &'_ Arc<Object>| {
        serde_json::to_value(Line { summary: &object.summary, traffic: console.calls.traffic(&object.key) })
            .ok()
    };
    json_of(&json!({"objects": objects.iter().filter_map(line).collect::<Vec<_>>()}))
}

/// What the viewer may not see does not exist for them.
async fn detail(console: &Console, viewer: &Viewer, key: &Key) -> Response<Body> {
    let Some(object) = console.objects.find(key) else { return not_found() };
    if !viewer.may_see(key).await {
        return not_found();
    }
    let visible = viewer.visible(console.objects.all()).await;
    let mut detail = Detail::new(&object, &visible);
    detail.links = console.links.of_object(key);
    for child in console.objects.children(key) {
        if viewer.may_see_child(key, &child).await {
            detail.objects.push(child);
        }
    }
    detail.sees_events = viewer.may_list_events(&key.namespace).await;
    if detail.sees_events {
        detail.events = object.events.iter().collect();
    }
    for restart in console.objects.restarts(key) {
        if viewer.may_get_pod(&key.namespace, &restart.pod).await {
            detail.restarts.push(restart.into());
        }
    }
    detail.sees_calls = viewer.may_see_calls(key).await;
    if let Some(log) = console.calls.find(key) {
        detail.traffic = Some(log.traffic());
        if detail.sees_calls {
            detail.calls = log.last();
            detail.calls.reverse();
            detail.connections = log.connections().await;
        }
    }
    json_of(&detail)
}
