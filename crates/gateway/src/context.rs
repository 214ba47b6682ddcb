//! The request that a thread processes, so that every log line can name it.
//!
//! A span of `tracing` would do the same, and cost a tenth of the time of a request that causes no log line.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, OnceLock},
};

use http::HeaderValue;

thread_local! {
    static CURRENT: RefCell<Option<Arc<RequestContext>>> = const { RefCell::new(None) };
}

/// What log lines have of the current request.
#[derive(Debug)]
pub struct RequestContext {
    id: HeaderValue,
    requested: OnceLock<Requested>,
}

/// What the client requested.
#[derive(Debug)]
struct Requested {
    method: String,
    tool: Option<String>,
}

/// The request that the thread processes now, if any.
pub fn request_context() -> Option<Arc<RequestContext>> {
    CURRENT.with_borrow(Clone::clone)
}

impl RequestContext {
    pub(crate) fn new(id: HeaderValue) -> Arc<Self> {
        Arc::new(Self { id, requested: OnceLock::new() })
    }

    /// Adds what the client requested, once that is known.
    pub(crate) fn describe(&self, method: String, tool: Option<String>) {
        self.requested.set(Requested { method, tool }).ok();
    }

    /// The fields of a log line about it.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let requested = self.requested.get();
        let fields = [
            ("request_id", self.id.to_str().ok()),
            ("mcp_method", requested.map(|requested| requested.method.as_str())),
            ("tool", requested.and_then(|requested| requested.tool.as_deref())),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Runs something synchronous in this context.
    pub(crate) fn during<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let mut context = Some(self.clone());
        let _current = Current::new(&mut context);
        work()
    }

    /// Polls a future in this context. The future is pinned by the caller, as it is large to move.
    pub(crate) async fn scope<T>(self: &Arc<Self>, mut work: Pin<&mut impl Future<Output = T>>) -> T {
        // Counted once, and not for each poll.
        let mut about = Some(self.clone());
        poll_fn(|context| {
            let _current = Current::new(&mut about);
            work.as_mut().poll(context)
        })
        .await
    }
}

/// The thread has this context, and what it had before is in its place, until this is dropped, after a panic as well.
struct Current<'a>(&'a mut Option<Arc<RequestContext>>);

impl<'a> Current<'a> {
    fn new(context: &'a mut Option<Arc<RequestContext>>) -> Self {
        let mut current = Self(context);
        current.swap();
        current
    }

    fn swap(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.0));
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        self.swap();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn fields() -> Vec<(&'static str, String)> {
        let about = request_context();
        about.iter().flat_map(|about| about.fields()).map(|(name, value)| (name, value.to_owned())).collect()
    }

    #[tokio::test]
    async fn each_poll_of_a_request_has_the_context_of_that_request() {
        let [one, two] = ["one", "two"].map(|id| RequestContext::new(HeaderValue::from_static(id)));
        let run = async |about: &Arc<RequestContext>| {
            let mut seen = Vec::new();
            about
                .scope(pin!(async {
                    for _ in 0..3 {
                        seen.push(fields());
                        tokio::task::yield_now().await;
                    }
                }))
                .await;
            seen
        };
        let (first, second) = tokio::join!(run(&one), run(&two));
        assert_eq!(first, vec![vec![("request_id", "one".to_owned())]; 3]);
        assert_eq!(second, vec![vec![("request_id", "two".to_owned())]; 3]);
        assert_eq!(fields(), []);
        one.describe("tools/call".into(), Some("read".into()));
        let requested = one.during(fields);
        assert_eq!(requested[1..], [("mcp_method", "tools/call".to_owned()), ("tool", "read".to_owned())]);
    }
}
