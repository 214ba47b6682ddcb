//! The process of a container, with its input and output.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use super::{
    Inner,
    http::{respond, respond_error},
};

pub(super) fn started(stream: UnixStream, inner: &Mutex<Inner>, id: &str) {
    let mut inner = inner.lock().unwrap();
    let container = &inner.containers[id];
    let program = inner.programs[container.body["Image"].as_str().unwrap()].clone();
    let env = container.body["Env"].as_array().unwrap().iter().map(|pair| pair.as_str().unwrap());
    let spawned = Command::new(&program[0])
        .args(&program[1..])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(env.map(|pair| pair.split_once('=').unwrap()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = match spawned {
        Ok(process) => process,
        Err(error) => {
            return respond_error(stream, "400 Bad Request", &format!("exec: {}: {error}", program[0]));
        }
    };
    let container = inner.containers.get_mut(id).unwrap();
    let attached = container.attached.as_ref().expect("no client is attached").try_clone().unwrap();
    let attached = Arc::new(Mutex::new(attached));
    let mut input = process.stdin.take().unwrap();
    let mut from = attached.lock().unwrap().try_clone().unwrap();
    // Chunk by chunk: a copy within the kernel may wait for more.
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            input.write_all(&chunk[..read]).ok();
        }
    });
    let output = framed(1, process.stdout.take().unwrap(), &attached);
    let errors = framed(2, process.stderr.take().unwrap(), &attached);
    thread::spawn(move || {
        output.join().unwrap();
        errors.join().unwrap();
        attached.lock().unwrap().shutdown(std::net::Shutdown::Both).ok();
    });
    container.process = Some(process);
    respond(stream, "204 No Content", "");
}

/// Copies what a process writes into frames of this kind.
fn framed(
    kind: u8,
    mut from: impl Read + Send + 'static,
    to: &Arc<Mutex<UnixStream>>,
) -> thread::JoinHandle<()> {
    let to = to.clone();
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            let length = u32::try_from(read).unwrap().to_be_bytes();
            let frame = [&[kind, 0, 0, 0][..], &length, &chunk[..read]].concat();
            to.lock().unwrap().write_all(&frame).ok();
        }
    })
}

pub(super) fn stopped(stream: UnixStream, inner: &Mutex<Inner>, id: &str) {
    let process = inner.lock().unwrap().containers[id].process.as_ref().map(Child::id);
    if let Some(process) = process {
        Command::new("kill").arg(process.to_string()).status().unwrap();
    }
    ended(inner, id);
    respond(stream, "204 No Content", "");
}

/// Waits until the process of a container has ended.
pub(super) fn ended(inner: &Mutex<Inner>, id: &str) -> Option<i32> {
    loop {
        let mut held = inner.lock().unwrap();
        let container = held.containers.get_mut(id)?;
        if let Some(process) = &mut container.process
            && let Some(status) = process.try_wait().unwrap()
        {
            container.status = status.code();
            return Some(container.status.unwrap_or(137));
        }
        drop(held);
        thread::sleep(Duration::from_millis(20));
    }
}
