//! What is watched, and what is kept of it.

use kube::core::DynamicObject;
use skep_converge::Kind;

/// A kind of object that is watched.
pub trait Watched: Send + Sync + 'static {
    /// What is kept of an object. Readers are woken when it differs from what was kept before.
    type Kept: Clone + PartialEq + Send + Sync;

    /// The kind.
    const KIND: Kind;

    /// The labels that an object must have to be watched, as a selector. Without it, all are.
    const SELECTOR: Option<&'static str> = None;

    /// Whether only the metadata of objects is asked for, as for Secrets.
    const METADATA_ONLY: bool = false;

    /// What to keep of the object.
    fn keep(object: &DynamicObject) -> Self::Kept;

    /// Whether the watch delivers the object, by its labels.
    fn selects(object: &DynamicObject) -> bool {
        let Some((key, value)) = Self::SELECTOR.and_then(|selector| selector.split_once('=')) else {
            return true;
        };
        object.metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|label| label == value)
    }

    /// The keys that the object can be found by within its namespace, beside its name.
    fn index(_kept: &Self::Kept) -> Vec<String> {
        Vec::new()
    }
}

/// A watched kind whose objects are read whole when somebody needs them, and not kept otherwise.
pub trait Readable: Watched {
    /// What is read of an object.
    type Content: Send + Sync;

    /// The content of the object.
    fn content(object: DynamicObject) -> Self::Content;
}
