//! A request as it comes off its connection.

use http::{Request, header};

use crate::upstream::without_connection;

/// What a request says of itself and of the connection that it came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Another one may follow.
    Plain,
    /// It came in chunks, and none may follow. There may have been a length too, which hyper rightly ignores and does not
    /// show: for whoever passed it on by that length, what follows is a part of it (RFC 9112, section 6.1).
    Chunked,
    /// It is for two hosts, or for no path: whoever passed it on may have read it otherwise.
    Unclear,
}

/// Takes off what belongs to the connection, before anybody looks: all see what the server will see, and a client cannot
/// have a header taken off that is set here.
pub(crate) fn taken_off<B>(request: &mut Request<B>) -> Arrival {
    let path = request.uri().path_and_query().is_some_and(|path| path.as_str().starts_with('/'));
    let headers = request.headers_mut();
    let hosts = headers.get_all(header::HOST).iter().count();
    let chunked = headers.contains_key(header::TRANSFER_ENCODING);
    without_connection(headers);
    match chunked {
        _ if hosts > 1 || !path => Arrival::Unclear,
        true => Arrival::Chunked,
        false => Arrival::Plain,
    }
}
