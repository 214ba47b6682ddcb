//! The page of a request that is refused.

use bytes::Bytes;
use http::{Response, StatusCode, header};

use super::page::{document, escaped};
use crate::response::Explanation;

/// A response as a browser shows it: one that explains itself becomes a page, with the same status and cookies.
pub(crate) fn readable(response: Response<Bytes>) -> Response<Bytes> {
    let Some(Explanation(text)) = response.extensions().get().cloned() else { return response };
    let status = response.status();
    let (title, advice) = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => (
            "Try again in a moment",
            "Nothing is lost: reload this page in a moment, or start again in your application.",
        ),
        StatusCode::NOT_FOUND => {
            ("There is nothing here", "Go back to your application, and start again there.")
        }
        _ => ("This cannot go on", "Go back to your application, and start again there."),
    };
    let mut first = text.chars();
    let text: String = first.next().into_iter().flat_map(char::to_uppercase).chain(first).collect();
    let body = format!("<h1>{title}</h1><p>{}.</p><p>{advice}</p>", escaped(&text));
    let mut page = document(title, &body);
    *page.status_mut() = status;
    for name in [header::SET_COOKIE, header::RETRY_AFTER] {
        for value in response.headers().get_all(&name) {
            page.headers_mut().append(&name, value.clone());
        }
    }
    page
}
