//! Which lists below a PodTemplateSpec are merged, and by what: the patchStrategy and patchMergeKey of Kubernetes 1.34.
//!
//! Fields that are not in this table are merged by default: objects field by field, lists and scalars are replaced.
//! A test compares this table with the OpenAPI document of a real API server.

use Field::{Keyed, Object, Set};

/// The fields of a Kubernetes type that are not merged by default, or that contain such fields.
pub(crate) struct Type(&'static [(&'static str, Field)]);

/// How one field is merged.
#[derive(Clone, Copy)]
pub(crate) enum Field {
    /// By default: an object field by field; a list or a scalar is replaced.
    Ordinary,
    /// An object with fields of this type.
    Object(&'static Type),
    /// A list of objects of this type, merged by this key.
    Keyed(&'static str, &'static Type),
    /// A list of scalars, merged as a set.
    Set,
}

impl Type {
    /// How the field of this name is merged.
    pub(crate) fn field(&self, name: &str) -> Field {
        self.0.iter().find(|(known, _)| *known == name).map_or(Field::Ordinary, |(_, field)| *field)
    }
}

impl Field {
    /// The type of this field, when its value is an object.
    pub(crate) fn object_type(self) -> &'static Type {
        if let Object(of) = self { of } else { &ORDINARY }
    }
}

pub(crate) static POD_TEMPLATE_SPEC: Type =
    Type(&[("metadata", Object(&OBJECT_META)), ("spec", Object(&POD_SPEC))]);

static OBJECT_META: Type = Type(&[("finalizers", Set), ("ownerReferences", Keyed("uid", &ORDINARY))]);

static POD_SPEC: Type = Type(&[
    ("containers", Keyed("name", &CONTAINER)),
    ("ephemeralContainers", Keyed("name", &CONTAINER)),
    ("hostAliases", Keyed("ip", &ORDINARY)),
    ("imagePullSecrets", Keyed("name", &ORDINARY)),
    ("initContainers", Keyed("name", &CONTAINER)),
    ("resourceClaims", Keyed("name", &ORDINARY)),
    ("schedulingGates", Keyed("name", &ORDINARY)),
    ("topologySpreadConstraints", Keyed("topologyKey", &ORDINARY)),
    ("volumes", Keyed("name", &VOLUME)),
]);

static CONTAINER: Type = Type(&[
    ("env", Keyed("name", &ORDINARY)),
    // Two ports with one number and different protocols are the same here: an old bug of the API that has to be
    // followed.
    ("ports", Keyed("containerPort", &ORDINARY)),
    ("volumeDevices", Keyed("devicePath", &ORDINARY)),
    ("volumeMounts", Keyed("mountPath", &ORDINARY)),
]);

static VOLUME: Type = Type(&[("ephemeral", Object(&EPHEMERAL_VOLUME))]);
static EPHEMERAL_VOLUME: Type = Type(&[("volumeClaimTemplate", Object(&VOLUME_CLAIM_TEMPLATE))]);
static VOLUME_CLAIM_TEMPLATE: Type = Type(&[("metadata", Object(&OBJECT_META))]);

static ORDINARY: Type = Type(&[]);
