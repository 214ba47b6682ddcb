//! A console on one machine, whose servers are hostile.

use skep_console::LocalAccess;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// A server that sends this head to every request, and a body that would run in a browser.
async fn hostile(head: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let read = stream.read(&mut request).await.unwrap();
                assert!(read > 0, "a request arrives");
                let body = "<script>alert(1)</script>";
                let length = body.len();
                let response =
                    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(response.as_bytes()).await.unwrap();
            });
        }
    });
    address
}

/// A page of a console that shows the server at this address.
async fn page(server: SocketAddr) -> Page {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access = LocalAccess::new(address.port()).unwrap();
    let token = access.fragment().trim_start_matches("#token=").to_owned();
    let objects = Arc::new(Objects::default());
    objects.apply(json!({
        "kind": "MCPServer", "metadata": {"name": "evil", "namespace": "team"},
        "status": {"url": format!("http://{server}/mcp")},
    }));
    let console = Arc::new(Console::new(objects, Arc::default(), Access::Local(access)).unwrap());
    tokio::spawn(serve(listener, console, Workers::default(), std::future::pending()));
    let mut page = Page::at(address, &address.to_string());
    page.headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    page
}

const EVIL: &str = "mcp/MCPServer/team/evil";

fn header(response: &Response<Incoming>, name: &str) -> String {
    let values: Vec<_> =
        response.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
    values.join(" | ")
}

#[tokio::test]
async fn what_a_server_sends_is_no_page_of_the_console() {
    for (head, status, type_) in [
        ("200 OK\r\ncontent-type: text/html", 502, "application/json"),
        ("200 OK\r\ncontent-type: image/svg+xml", 502, "application/json"),
        ("404 Not Found\r\ncontent-type: text/html", 404, "text/plain; charset=utf-8"),
        ("200 OK", 200, "text/plain; charset=utf-8"),
        ("200 OK\r\ncontent-type: application/json; charset=utf-7", 200, "application/json"),
        ("200 OK\r\ncontent-type: text/event-stream", 200, "text/event-stream"),
    ] {
        let mut page = page(hostile(head).await).await;
        for method in [Method::GET, Method::POST] {
            page.headers.remove("x-skep-console");
            let response = page.send(method.clone(), EVIL, "").await;
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "{method} of an address that is opened");
            page.headers.insert("x-skep-console", HeaderValue::from_static("1"));
            let response = page.send(method.clone(), EVIL, "").await;
            assert_eq!(
                (response.status().as_u16(), header(&response, "content-type").as_str()),
                (status, type_),
                "{head}"
            );
        }
        page.headers.insert("sec-fetch-mode", HeaderValue::from_static("navigate"));
        assert_eq!(page.send(Method::GET, EVIL, "").await.status(), StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn a_server_opens_no_sign_in_dialog_of_the_browser() {
    let server = hostile(
        "401 Unauthorized\r\nwww-authenticate: Basic realm=\"Company sign-on\"\r\nset-cookie: a=b\r\nclear-site-data: \"*\"\r\n\
         content-security-policy: script-src *\r\nrefresh: 0; url=//evil.example\r\nlink: </x>; rel=preload",
    );
    let mut page = page(server.await).await;
    page.headers.insert("x-skep-console", HeaderValue::from_static("1"));
    let response = page.send(Method::POST, EVIL, "{}").await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    for name in ["www-authenticate", "set-cookie", "clear-site-data", "refresh", "link"] {
        assert_eq!(header(&response, name), "", "{name}");
    }
}

#[tokio::test]
async fn every_response_has_the_headers_that_protect_a_browser() {
    let mut page = page(hostile("200 OK\r\ncontent-type: application/json").await).await;
    page.headers.insert("x-skep-console", HeaderValue::from_static("1"));
    let data = "default-src 'none'; frame-ancestors 'none'; sandbox";
    let of_page = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; \
                   form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                   trusted-types 'none'";
    for (path, policy, kept) in [
        ("/", of_page, "no-cache"),
        ("/js/main.js", of_page, "no-cache"),
        ("/api/session", data, "no-store"),
        ("/api/events", data, "no-store"),
        ("/api/nothing", data, "no-store"),
        ("/api/mcp/MCPServer/team/evil", data, "no-store"),
        ("/health", data, ""),
        ("/nothing", data, ""),
    ] {
        let response = page.request(Method::GET, path, "").await;
        for (name, value) in [
            ("content-security-policy", policy),
            ("cache-control", kept),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("access-control-allow-origin", ""),
        ] {
            assert_eq!(header(&response, name), value, "{name} of {path}");
        }
    }
}
