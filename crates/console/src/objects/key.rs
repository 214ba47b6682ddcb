//! Which object.

use serde::Serialize;
use serde_json::Value;

/// The name of an object: unique among all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Key {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The key of these three.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object.
    pub(crate) fn of(manifest: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metadata = &manifest["metadata"];
        Some(Self {
            kind: text(&manifest["kind"])?,
            namespace: text(&metadata["namespace"]).unwrap_or_default(),
            name: text(&metadata["name"])?,
        })
    }

    /// The key in the path `KIND/NAMESPACE/NAME`. A namespace that is empty is `-` there.
    pub(crate) fn in_path(path: &str) -> Option<Self> {
        let mut parts =
            path.split('/').map(|part| percent_encoding::percent_decode_str(part).decode_utf8().ok());
        let (kind, namespace, name) = (parts.next()??, parts.next()??, parts.next()??);
        let namespace = if namespace == "-" { "" } else { &*namespace };
        parts.next().is_none().then(|| Self::new(&kind, namespace, &name))
    }
}
