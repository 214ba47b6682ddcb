//! The addresses of client documents (draft-ietf-oauth-client-id-metadata-document, section 3).

use super::Uri;
use crate::limits;

/// Whether a client id is the address of a document: `https` with a path, without user, fragment, query and dot segments.
/// Plain HTTP on this machine is for a server that is itself there, to develop with.
pub(crate) fn is_document_url(id: &str, may_be_local: bool) -> bool {
    let Some(uri) = Uri::parse(id) else { return false };
    let is_secure = uri.scheme == "https" || (may_be_local && uri.scheme == "http" && uri.is_loopback());
    is_secure
        && id.len() <= limits::URI
        && uri.has_host()
        && uri.user.is_none()
        && !uri.has_fragment
        && !uri.has_dot_segments()
        && !uri.rest.contains('?')
        && uri.rest.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_document_means_one_document_only() {
        assert!(is_document_url("https://client.example/c.json", false));
        assert!(is_document_url("http://127.0.0.1:1/c.json", true));
        for wrong in [
            "http://client.example/c.json",
            "http://127.0.0.1:1/c.json",
            "https://client.example",
            "https://client.example/",
            "https://u@client.example/c",
            "https://client.example/c#x",
            "https://client.example/c?x=1",
            "https://client.example/a/../c",
            "https://client.example/%2e%2e/c",
            "file:///etc/passwd",
            "client",
        ] {
            assert!(!is_document_url(wrong, false), "{wrong}");
        }
    }
}
