//! Content that is fetched on demand.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Client, core::DynamicObject};
use skep_converge::{Kind, Meta, error_chain};

use crate::{
    Content, Watched,
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

/// How many bytes of contents are kept. What was read least recently is fetched again when it is needed.
const KEPT: usize = 32 << 20;

/// The cached contents of objects, each at one revision of the object.
#[derive(Default)]
pub(crate) struct Contents(Mutex<State>);

#[derive(Default)]
struct State {
    parts: HashMap<Name, HashMap<TypeId, Part>>,
    size: usize,
    /// How often a part was read.
    reads: u64,
}

/// A part of the content of an object.
struct Part {
    meta: Meta,
    content: Arc<dyn Any + Send + Sync>,
    size: usize,
    /// The number of the last read.
    read: u64,
}

impl Contents {
    pub(crate) async fn read<C: Content>(
        &self,
        client: Option<&Client>,
        namespace: &str,
        name: &str,
        seen: &Meta,
    ) -> Result<Option<Arc<C>>, ReadError> {
        if let Some(content) = self.known::<C>(namespace, name, seen) {
            return Ok(Some(content));
        }
        let Some(client) = client else { return Ok(None) };
        let kind = C::Of::kind();
        let path = format!("{}/{name}", kind.path(Some(namespace)));
        let response = match http::Request::get(path).body(Vec::new()) {
            Ok(request) => client.request(request).await,
            Err(error) => Err(kube::Error::HttpError(error)),
        };
        match response {
            Ok(object) => {
                let content = self.insert::<C>(object);
                self.lock().limit(KEPT);
                Ok(Some(content))
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(ReadError::reading(kind, name, error)),
        }
    }

    pub(crate) fn insert<C: Content>(&self, object: DynamicObject) -> Arc<C> {
        let (name, meta) = (name_of(&object), Meta::of(&object.metadata));
        let content = Arc::new(C::of(object));
        let mut state = self.lock();
        state.reads += 1;
        let part = Part { meta, content: content.clone(), size: content.size(), read: state.reads };
        state.size += part.size;
        if let Some(old) = state.parts.entry(name).or_default().insert(TypeId::of::<C>(), part) {
            state.size -= old.size;
        }
        content
    }

    pub(crate) fn forget(&self, object: &DynamicObject) {
        let mut state = self.lock();
        let parts = state.parts.remove(&name_of(object)).unwrap_or_default();
        state.size -= parts.values().map(|part| part.size).sum::<usize>();
    }

    pub(crate) fn retain(&self, exists: impl Fn(&Name) -> bool) {
        self.lock().retain(|name, _| exists(name));
    }

    /// The cached content, unless the watch has delivered a later revision since.
    fn known<C: Content>(&self, namespace: &str, name: &str, seen: &Meta) -> Option<Arc<C>> {
        let mut state = self.lock();
        state.reads += 1;
        let reads = state.reads;
        let part = state.parts.get_mut(&(namespace.into(), name.into()))?.get_mut(&TypeId::of::<C>())?;
        let current = part.meta.uid == seen.uid && !part.meta.is_older_than(seen);
        part.read = reads;
        current.then(|| part.content.clone().downcast().ok()).flatten()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn retain(&mut self, keep: impl Fn(&Name, &Part) -> bool) {
        let mut size = 0;
        self.parts.retain(|name, parts| {
            parts.retain(|_, part| keep(name, part));
            size += parts.values().map(|part| part.size).sum::<usize>();
            !parts.is_empty()
        });
        self.size = size;
    }

    /// Drops what was read least recently, if there are more bytes than this.
    fn limit(&mut self, kept: usize) {
        if self.size <= kept {
            return;
        }
        let parts = self.parts.values().flat_map(HashMap::values);
        let mut by_age: Vec<(u64, usize)> = parts.map(|part| (part.read, part.size)).collect();
        by_age.sort_unstable_by(|one, other| other.cmp(one));
        // Half of it, so that this is not needed again soon.
        let mut size = 0;
        let fits = by_age.iter().take_while(|(_, part)| {
            size += part;
            size <= kept / 2
        });
        let oldest = fits.last().map_or(u64::MAX, |(read, _)| *read);
        self.retain(|_, part| part.read >= oldest);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    struct ConfigMaps;

    impl Watched for ConfigMaps {
        type Cached = ();

        fn kind() -> Kind {
            Kind::of::<ConfigMap>()
        }

        fn project(_: &DynamicObject) {}
    }

    struct Large;

    impl Content for Large {
        type Of = ConfigMaps;

        fn of(_: DynamicObject) -> Self {
            Self
        }

        fn size(&self) -> usize {
            1 << 20
        }
    }

    #[test]
    fn contents_have_a_bound_and_what_was_read_last_is_kept() {
        let (contents, meta) = (Contents::default(), Meta { uid: "u".into(), ..Meta::default() });
        let name = |number: usize| format!("bundle-{number}");
        for number in 0..250 {
            let metadata = json!({"namespace": "team", "name": name(number), "uid": "u"});
            contents.insert::<Large>(serde_json::from_value(json!({"metadata": metadata})).unwrap());
            contents.lock().limit(KEPT);
            assert!(contents.known::<Large>("team", &name(0), &meta).is_some(), "it is read each time");
            assert!(contents.lock().size <= KEPT);
        }
        let state = contents.lock();
        assert_eq!(state.size, state.parts.len() << 20);
        assert!(state.parts.contains_key(&("team".into(), name(249).into())));
    }
}
