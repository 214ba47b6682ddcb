//! Containers: creating, listing, attaching and removing.

use std::{io::Write, os::unix::net::UnixStream, sync::Mutex};

use serde_json::{Value, json};

use super::{
    Container, Inner,
    http::{respond, respond_error},
};

pub(super) fn created(stream: UnixStream, inner: &Mutex<Inner>, body: Value) {
    let mut inner = inner.lock().unwrap();
    if !inner.present.contains(body["Image"].as_str().unwrap()) {
        return respond_error(stream, "404 Not Found", "No such image");
    }
    let id = format!("c{}", inner.made.len());
    inner.made.push(body.clone());
    inner.containers.insert(id.clone(), Container { body, attached: None, process: None, status: None });
    respond(stream, "201 Created", &json!({"Id": id, "Warnings": []}).to_string());
}

pub(super) fn listed(stream: UnixStream, inner: &Mutex<Inner>, filters: &str) {
    let filters: Value = serde_json::from_str(filters).unwrap();
    let (label, value) = filters["label"][0].as_str().unwrap().split_once('=').unwrap();
    let inner = inner.lock().unwrap();
    let matching = inner.containers.iter().filter(|(_, container)| container.body["Labels"][label] == value);
    let list: Vec<Value> =
        matching.map(|(id, container)| json!({"Id": id, "Labels": container.body["Labels"]})).collect();
    respond(stream, "200 OK", &Value::Array(list).to_string());
}

pub(super) fn attached(stream: UnixStream, inner: &Mutex<Inner>, id: &str) {
    let mut attached = stream.try_clone().unwrap();
    let upgraded = "HTTP/1.1 101 UPGRADED\r\ncontent-type: application/vnd.docker.multiplexed-stream\r\n\
                    connection: Upgrade\r\nupgrade: tcp\r\n\r\n";
    // It is not started before the client is attached.
    let mut inner = inner.lock().unwrap();
    attached.write_all(upgraded.as_bytes()).unwrap();
    inner.containers.get_mut(id).unwrap().attached = Some(attached);
}

pub(super) fn removed(stream: UnixStream, inner: &Mutex<Inner>, id: &str) {
    let mut inner = inner.lock().unwrap();
    if inner.removals_to_fail > 0 {
        inner.removals_to_fail -= 1;
        let why = format!("cannot remove container {id} as it could not be stopped");
        return respond_error(stream, "500 Internal Server Error", &why);
    }
    let removed = inner.containers.remove(id);
    drop(inner);
    match removed {
        Some(mut container) => {
            if let Some(process) = &mut container.process {
                process.kill().ok();
                process.wait().unwrap();
            }
            respond(stream, "204 No Content", "");
        }
        None => respond_error(stream, "404 Not Found", "No such container"),
    }
}
