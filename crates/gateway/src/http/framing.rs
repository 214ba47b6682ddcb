//! How a request was framed on its connection.

use http::{Request, header};

use crate::headers;

/// The framing of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Another one may follow.
    Plain,
    /// It came in chunks, and none may follow. There may have been a length too, which hyper rightly ignores and does not
    /// show: for a proxy that forwarded it by that length, what follows is a part of it (RFC 9112, section 6.1).
    Chunked,
    /// It has two hosts, or no path: a proxy that forwarded it may have read it otherwise.
    Unclear,
}

/// How long the head of a request is. What may be around its values does not count.
pub(super) fn head_length<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let origin = uri.scheme_str().map_or(0, |scheme| scheme.len() + "://".len());
    let origin = origin + uri.authority().map_or(0, |authority| authority.as_str().len());
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + origin + path + "  HTTP/1.1\r\n".len();
    let fields =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + fields.sum::<usize>() + "\r\n".len()
}

/// Strips what belongs to the connection, before any middleware: all see what the server will see, and a client cannot
/// have a header stripped that is set here.
pub(super) fn strip_hop_by_hop<B>(request: &mut Request<B>) -> Framing {
    let path = request.uri().path_and_query().is_some_and(|path| path.as_str().starts_with('/'));
    let fields = request.headers_mut();
    let hosts = fields.get_all(header::HOST).iter().count();
    let chunked = fields.contains_key(header::TRANSFER_ENCODING);
    headers::strip_hop_by_hop(fields);
    match chunked {
        _ if hosts > 1 || !path => Framing::Unclear,
        true => Framing::Chunked,
        false => Framing::Plain,
    }
}
