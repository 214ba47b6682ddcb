//! The kinds that are watched, and what is cached of their objects.

use kube::core::DynamicObject;
use skep_converge::Kind;

/// A kind that is watched.
pub trait Watched: Send + Sync + 'static {
    /// What is cached of an object. The object itself is requeued when it changes, if its kind is controlled; its readers when its
    /// [`shared`](Self::shared) part does.
    type Cached: Clone + PartialEq + Send + Sync;

    /// The label selector of the watch. Without it, all objects are watched.
    const SELECTOR: Option<&'static str> = None;

    /// Whether only the metadata of objects is requested, as for Secrets.
    const METADATA_ONLY: bool = false;

    /// The kind.
    fn kind() -> Kind;

    /// Whether the watch delivers the object, by its labels.
    fn selects(object: &DynamicObject) -> bool {
        let Some((key, value)) = Self::SELECTOR.and_then(|selector| selector.split_once('=')) else {
            return true;
        };
        object.metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|label| label == value)
    }

    /// What to cache of the object.
    fn project(object: &DynamicObject) -> Self::Cached;

    /// The part that readers use, without what concerns the object's own controller alone, such as a status that lists these
    /// readers: with each further one, all would be requeued.
    fn shared(cached: &Self::Cached) -> impl PartialEq + '_ {
        cached
    }

    /// The index keys of the object. [`Reader::by_index`](crate::Reader::by_index) finds it by each of them within its
    /// namespace.
    fn index(_cached: &Self::Cached) -> Vec<String> {
        Vec::new()
    }
}

/// A part of the content of watched objects, which is fetched when a controller needs it, because caching all of it would be too
/// large.
pub trait Content: Sized + Send + Sync + 'static {
    /// The objects.
    type Of: Watched;

    /// The part of an object.
    fn of(object: DynamicObject) -> Self;

    /// About how many bytes it takes.
    fn size(&self) -> usize;
}
