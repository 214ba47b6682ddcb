//! Images: whether they exist, and pulling them.

use std::{io::Write, os::unix::net::UnixStream, sync::Mutex, thread, time::Duration};

use serde_json::json;

use super::{
    Inner,
    http::{respond, respond_error},
};

/// Reports whether an image exists.
pub(super) fn looked_up(stream: UnixStream, inner: &Mutex<Inner>, image: &str) {
    let known = inner.lock().unwrap().present.contains(image);
    if known {
        respond(stream, "200 OK", "{}")
    } else {
        respond_error(stream, "404 Not Found", "No such image")
    }
}

/// Pulls an image, in two steps with progress after each.
pub(super) fn pulled(mut stream: UnixStream, inner: &Mutex<Inner>, name: &str, tag: &str) {
    let image = format!("{name}:{tag}");
    let known = inner.lock().unwrap().programs.contains_key(&image);
    let layer = |now: u32| {
        let detail = json!({"current": now, "total": 100});
        json!({"status": "Downloading", "id": "a", "progressDetail": detail}).to_string()
    };
    let lines = if known {
        vec![
            layer(40),
            layer(100),
            json!({"status": format!("Downloaded newer image for {image}")}).to_string(),
        ]
    } else {
        let error = "manifest unknown";
        vec![json!({"errorDetail": {"message": error}, "error": error}).to_string()]
    };
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    for line in lines {
        write!(stream, "{:x}\r\n{line}\r\n\r\n", line.len() + 2).ok();
        while inner.lock().unwrap().held {
            thread::sleep(Duration::from_millis(20));
        }
    }
    if known {
        inner.lock().unwrap().present.insert(image);
    }
    write!(stream, "0\r\n\r\n").ok();
}
