//! What callers, backends and administrators write is nested as deep as they like: nothing here recurses by that, as a stack that
//! overflows ends the process with all its sessions.

use serde_json::json;
use skep_vmcp::Settings;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
};

const DEPTH: usize = 100_000;

fn nested(open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(DEPTH), close.repeat(DEPTH))
}

/// JSON that is nested in lists, and in objects.
fn values() -> [String; 2] {
    [nested("[", "", "]"), nested("{\"a\":", "1", "}")]
}

const MORE: &str = "codeMode: {enabled: true}\noptimizer: {}\ncompositeTools:\n  - name: flow\n    description: d\n    \
    parameters: {type: object, properties: {x: {}}}\n    steps: [{id: s, tool: a_echo, arguments: {x: \"{{json .params.x}}\"}}]\n";
const POLICIES: &str =
    r#"permit(principal, action, resource) unless { context has arg_x && context.arg_x == "no" };"#;

async fn server(backend: &Backend) -> Server {
    let config = Server::config(&[("a", backend.url())], MORE);
    let auth =
        format!("incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: {}}}}}", json!([POLICIES]));
    Server::of(&config.replace("incomingAuth: {type: anonymous}", &auth), None, None).await
}

/// Calls a tool with these arguments, which are JSON. Returns whether there is a response.
async fn has_response(server: &Server, client: &Client, tool: &str, arguments: &str) -> bool {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call_tool","arguments":{{"tool_name":"{tool}","parameters":{arguments}}}}}}}"#
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-session-id: {}\r\ncontent-length: {}\r\n\r\n",
        client.session,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    response.starts_with(b"HTTP/1.1 ")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_callers_and_backends_nest_very_deep_ends_no_process() {
    let backend = Backend::start().await;
    let server = server(&backend).await;
    let client = server.client().await;
    let script = |data: &str| format!(r#"{{"script":"return [x, a_echo(x=x)]","data":{{"x":{data}}}}}"#);
    for value in values() {
        for (tool, arguments) in [
            ("a_echo", format!(r#"{{"x":{value}}}"#)),
            ("flow", format!(r#"{{"x":{value}}}"#)),
            ("execute_tool_script", script(&value)),
        ] {
            assert!(has_response(&server, &client, tool, &arguments).await, "{tool}");
        }
        for result in [
            format!(r#"{{"content":[],"structuredContent":{value}}}"#),
            format!(r#"{{"content":{value}}}"#),
            format!(r#"{{"content":[],"_meta":{value}}}"#),
        ] {
            backend.set_result(Some(result.into()));
            for (tool, arguments) in
                [("a_echo", r#"{"x":1}"#), ("flow", r#"{"x":1}"#), ("execute_tool_script", &script("1"))]
            {
                assert!(has_response(&server, &client, tool, arguments).await, "{tool}");
            }
        }
        backend.set_result(None);
    }
    let call = json!({"name": "call_tool", "arguments": {"tool_name": "a_whoami", "parameters": {}}});
    let response = client.request("tools/call", call).await;
    assert!(response["result"].is_object() && !text(&response).1, "{response}");
}

#[test]
fn what_an_administrator_nests_very_deep_ends_no_process() {
    let composite = |arguments: &str| {
        format!(
            "compositeTools: [{{name: f, description: d, steps: [{{id: s, tool: t, arguments: {arguments}}}]}}]\n"
        )
    };
    let quoted = |text: String| serde_json::Value::from(text).to_string();
    let policy = |condition: String| {
        let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
        format!("incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: [{}]}}}}\n", quoted(policy))
    };
    let mut texts = Vec::new();
    for value in values() {
        texts.push(composite(&format!("{{x: {value}}}")));
        texts.push(format!("passthroughHeaders: {value}\n"));
        texts.push(format!("unknown: {value}\n"));
    }
    for template in [
        nested("(", "1", ")"),
        nested("{{if 1}}", "x", "{{end}}"),
        nested("", &"{{if 1}}{{else if 2}}".repeat(DEPTH), ""),
        "{{.a".to_owned() + &".a".repeat(DEPTH) + "}}",
        "{{1".to_owned() + &" | json".repeat(DEPTH) + "}}",
    ] {
        texts.push(composite(&format!("{{x: {}}}", quoted(format!("{{{{{template}}}}}")))));
        texts.push(composite(&format!("{{x: {}}}", quoted(template))));
    }
    for condition in [
        nested("(", "true", ")"),
        nested("[", "", "]") + " == []",
        "true".to_owned() + &" && true".repeat(DEPTH),
        "1".to_owned() + &" + 1".repeat(DEPTH) + " == 1",
        "context".to_owned() + &".a".repeat(DEPTH),
        "if true then true else ".repeat(DEPTH) + "true",
    ] {
        texts.push(policy(condition));
    }
    for text in texts {
        let config = Server::config(&[("a", "http://127.0.0.1:1/mcp".to_owned())], "");
        let config = match text.starts_with("incomingAuth") {
            true => config.replace("incomingAuth: {type: anonymous}\n", &text),
            false => config + &text,
        };
        // As in a thread of the server.
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        thread.spawn(move || drop(Settings::parse(&config))).unwrap().join().unwrap();
    }
}
