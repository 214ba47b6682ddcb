//! Ports that containers publish.

use std::{
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::Inner;

/// Leads the published port to the one of the process, for as long as the container is there.
pub(super) fn publish(body: &Value, inner: &Arc<Mutex<Inner>>, id: &str) {
    let Some((port, here)) =
        body["HostConfig"]["PortBindings"].as_object().and_then(|ports| ports.iter().next())
    else {
        return;
    };
    let port: u16 = port.strip_suffix("/tcp").unwrap().parse().unwrap();
    let place = format!("{}:{}", here[0]["HostIp"].as_str().unwrap(), here[0]["HostPort"].as_str().unwrap());
    let listener = TcpListener::bind(place).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (inner, id) = (inner.clone(), id.to_owned());
    thread::spawn(move || {
        while inner.lock().unwrap().containers.contains_key(&id) {
            let Ok((client, _)) = listener.accept() else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            client.set_nonblocking(false).unwrap();
            if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                let (mut a, mut b) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (mut c, mut d) = (client, server);
                thread::spawn(move || {
                    std::io::copy(&mut a, &mut b).ok();
                    b.shutdown(std::net::Shutdown::Write).ok();
                });
                thread::spawn(move || {
                    std::io::copy(&mut d, &mut c).ok();
                    c.shutdown(std::net::Shutdown::Write).ok();
                });
            }
        }
    });
}
