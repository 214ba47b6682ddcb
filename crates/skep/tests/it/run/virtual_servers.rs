//! What virtual servers get from other objects of the file.

use std::sync::{Arc, Mutex};

use super::{Run, life::recording_remote, until};

/// A virtual server before a server that needs a secret of the file, by how the group finds it.
fn manifests(remote: &str, outgoing: &str) -> String {
    let object = |kind: &str, name: &str, spec: &str| {
        format!(
            "apiVersion: toolhive.stacklok.dev/v1beta1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
        )
    };
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\n\
                  stringData: {api: key-of-the-api, tenant: name-of-the-tenant}\n---\n";
    let auth = "{type: headerInjection, headerInjection: {headerName: X-Api-Key, valueSecretRef: {name: keys, key: api}}}";
    let entry = format!(
        "{{remoteUrl: {remote}, transport: streamable-http, groupRef: {{name: g}}, externalAuthConfigRef: {{name: api-key}}, \
         headerForward: {{addPlaintextHeaders: {{X-Team: sky}}, \
         addHeadersFromSecret: [{{headerName: X-Tenant, valueSecretRef: {{name: keys, key: tenant}}}}]}}}}"
    );
    let server = format!("{{groupRef: {{name: g}}, incomingAuth: {{type: anonymous}}{outgoing}}}");
    [
        secret.to_owned(),
        object("MCPGroup", "g", "{}"),
        object("MCPExternalAuthConfig", "api-key", auth),
        object("MCPServerEntry", "docs", &entry),
        object("VirtualMCPServer", "all", &server),
    ]
    .concat()
}

#[test]
fn a_virtual_server_authenticates_to_its_backends_with_the_secrets_of_the_file() {
    for outgoing in ["", ", outgoingAuth: {source: inline}", ", outgoingAuth: {source: discovered}"] {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let run = Run::start(&manifests(&recording_remote(0, heads.clone()), outgoing));
        let client = run.client("all");
        until(|| Some(client.tools()).filter(|tools| tools == &["docs_search"])).expect(outgoing);
        let heads = heads.lock().unwrap();
        for head in heads.iter() {
            let has = |line: &str| head.lines().any(|header| header.eq_ignore_ascii_case(line));
            for line in ["x-api-key: key-of-the-api", "x-team: sky", "x-tenant: name-of-the-tenant"] {
                assert!(has(line), "{outgoing}: {line} is not in {head}");
            }
        }
        assert!(!heads.is_empty());
        let output = run.output();
        for secret in ["key-of-the-api", "name-of-the-tenant"] {
            assert!(!output.contains(secret), "{output}");
        }
    }
}
