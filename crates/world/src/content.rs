//! Content that is read when it is needed.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Client, core::DynamicObject};
use skep_converge::{Kind, Meta, said};

use crate::{
    Readable,
    store::{Name, name_of},
};

/// Something that is there could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}: {}", said(source))]
pub struct ReadError {
    what: String,
    source: Box<kube::Error>,
}

impl ReadError {
    fn reading(kind: Kind, name: &str, source: kube::Error) -> Self {
        Self { what: format!("{} {name}", kind.kind), source: Box::new(source) }
    }

    /// Whether the API server does not know the kind.
    pub fn is_unknown(&self) -> bool {
        // An API server that has nothing of the group answers in plain words, with no reason.
        matches!(self.source.as_ref(), kube::Error::Api(status) if status.code == 404)
    }

    pub(crate) fn listing(kind: Kind, source: kube::Error) -> Self {
        Self { what: format!("the list of {}", kind.plural), source: Box::new(source) }
    }
}

/// The contents of the objects that somebody has read, each as of one state of the object.
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
        let path = format!("{}/{name}", W::KIND.path(Some(namespace)));
        let answer = match http::Request::get(path).body(Vec::new()) {
            Ok(request) => client.request(request).await,
            Err(error) => Err(kube::Error::HttpError(error)),
        };
        match answer {
            Ok(object) => Ok(Some(self.keep::<W>(object))),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(ReadError::reading(W::KIND, name, error)),
        }
    }

    pub(crate) fn keep<W: Readable>(&self, object: DynamicObject) -> Arc<W::Content> {
        let (name, meta) = (name_of(&object), Meta::of(&object.metadata));
        let content = Arc::new(W::content(object));
        self.lock().insert(name, (meta, content.clone()));
        content
    }

    pub(crate) fn forget(&self, object: &DynamicObject) {
        self.lock().remove(&name_of(object));
    }

    /// The content that was read, unless the watch has seen a later state since.
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
