//! Content that is fetched on demand.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Client, core::DynamicObject};
use skep_converge::{Kind, Meta, error_chain};

use crate::{
    Readable,
    store::{Name, name_of},
};

/// An existing object could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}: {}", error_chain(cause))]
pub struct ReadError {
    what: String,
    // Part of the message, and not the source, as in `skep_converge::Error`.
    cause: Box<kube::Error>,
}

impl ReadError {
    fn reading(kind: Kind, name: &str, cause: kube::Error) -> Self {
        Self { what: format!("{} {name}", kind.kind), cause: Box::new(cause) }
    }

    pub(crate) fn listing(kind: Kind, cause: kube::Error) -> Self {
        Self { what: format!("the list of {}", kind.plural), cause: Box::new(cause) }
    }
}

/// The cached contents of objects, each at one revision of the object.
#[derive(Default)]
pub(crate) struct Contents(Mutex<HashMap<Name, Content>>);

type Content = (Meta, Arc<dyn Any + Send + Sync>);

impl Contents {
    pub(crate) async fn read<W: Readable>(
        &self,
        client: Option<&Client>,
        namespace: &str,
        name: &str,
        seen: &Meta,
    ) -> Result<Option<Arc<W::Content>>, ReadError> {
        if let Some(content) = self.known::<W>(namespace, name, seen) {
            return Ok(Some(content));
        }
        let Some(client) = client else { return Ok(None) };
        let path = format!("{}/{name}", W::kind().path(Some(namespace)));
        let response = match http::Request::get(path).body(Vec::new()) {
            Ok(request) => client.request(request).await,
            Err(error) => Err(kube::Error::HttpError(error)),
        };
        match response {
            Ok(object) => Ok(Some(self.insert::<W>(object))),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(ReadError::reading(W::kind(), name, error)),
        }
    }

    pub(crate) fn insert<W: Readable>(&self, object: DynamicObject) -> Arc<W::Content> {
        let (name, meta) = (name_of(&object), Meta::of(&object.metadata));
        let content = Arc::new(W::content(object));
        self.lock().insert(name, (meta, content.clone()));
        content
    }

    pub(crate) fn forget(&self, object: &DynamicObject) {
        self.lock().remove(&name_of(object));
    }

    pub(crate) fn retain(&self, exists: impl Fn(&Name) -> bool) {
        self.lock().retain(|name, _| exists(name));
    }

    /// The cached content, unless the watch has delivered a later revision since.
    fn known<W: Readable>(&self, namespace: &str, name: &str, seen: &Meta) -> Option<Arc<W::Content>> {
        let contents = self.lock();
        let (meta, content) = contents.get(&(namespace.into(), name.into()))?;
        let current = meta.uid == seen.uid && !meta.is_older_than(seen);
        current.then(|| content.clone().downcast().ok()).flatten()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Content>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
