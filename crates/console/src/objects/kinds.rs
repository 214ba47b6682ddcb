//! The kinds of the API.

use std::sync::LazyLock;

use kube::api::ApiResource;
use skep_api::{for_each_kind, kinds};

static RESOURCES: LazyLock<Vec<ApiResource>> = LazyLock::new(|| {
    macro_rules! resources {
        ($($kind:ident),+) => { vec![$(ApiResource::erase::<kinds::$kind>(&())),+] };
    }
    for_each_kind!(resources)
});

/// All kinds.
pub(crate) fn resources() -> &'static [ApiResource] {
    &RESOURCES
}

/// The name of a kind in paths and roles.
pub(crate) fn plural(kind: &str) -> Option<&'static str> {
    RESOURCES.iter().find(|resource| resource.kind == kind).map(|resource| resource.plural.as_str())
}
