//! The volume for the model.
//!
//! The claims of a StatefulSet are immutable. So they stay as they are, and a condition reports a spec that describes
//! others.

use k8s_openapi::{
    api::core::v1::{
        PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus,
        VolumeResourceRequirements,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use skep_api::workload::MetadataOverrides;
use skep_gocompat::quantity;

use super::inputs::Inputs;
use crate::build::{Labels, added};

/// The name of the volume and of the claim for it.
pub(super) const VOLUME: &str = "model-cache";
/// Where it is mounted.
pub(super) const FOLDER: &str = "/data";

/// The claims that the StatefulSet has, or will be created with.
pub(super) fn claims(inputs: &Inputs) -> Vec<PersistentVolumeClaim> {
    match &inputs.live {
        Some(live) => live.claims.clone(),
        None => desired(inputs).into_iter().collect(),
    }
}

/// Whether the StatefulSet has other claims than the spec describes.
pub(super) fn differs(inputs: &Inputs) -> bool {
    let Some(live) = &inputs.live else { return false };
    match (desired(inputs), live.claims.as_slice()) {
        (None, []) => false,
        (Some(desired), [claim]) => !is_same(&desired, claim, &live.selector),
        _ => true,
    }
}

/// The claim that the spec describes, with the API server's defaults, because claims are owned as a whole.
fn desired(inputs: &Inputs) -> Option<PersistentVolumeClaim> {
    let cache = inputs.spec().model_cache.as_ref().filter(|cache| cache.enabled())?;
    let metadata = ObjectMeta {
        name: Some(VOLUME.into()),
        labels: added(inputs.labels(), overrides(inputs).map(|users| &users.labels)),
        annotations: added([].into(), overrides(inputs).map(|users| &users.annotations)),
        ..ObjectMeta::default()
    };
    let storage = [("storage".to_owned(), Quantity(cache.size().into()))].into();
    let spec = PersistentVolumeClaimSpec {
        access_modes: Some(vec![cache.access_mode.unwrap_or_default().as_str().into()]),
        resources: Some(VolumeResourceRequirements { requests: Some(storage), limits: None }),
        storage_class_name: cache.storage_class_name.clone().filter(|name| !name.is_empty()),
        volume_mode: Some("Filesystem".into()),
        ..PersistentVolumeClaimSpec::default()
    };
    let status = PersistentVolumeClaimStatus {
        phase: Some("Pending".into()),
        ..PersistentVolumeClaimStatus::default()
    };
    Some(PersistentVolumeClaim { metadata, spec: Some(spec), status: Some(status) })
}

fn overrides(inputs: &Inputs) -> Option<&MetadataOverrides> {
    inputs.spec().resource_overrides.as_ref()?.persistent_volume_claim.as_ref()
}

/// Whether a claim is as desired, in the fields that the spec can set.
fn is_same(desired: &PersistentVolumeClaim, live: &PersistentVolumeClaim, selector: &Labels) -> bool {
    let fields = |claim: &PersistentVolumeClaim| {
        let spec = claim.spec.clone().unwrap_or_default();
        let requests = spec.resources.and_then(|resources| resources.requests);
        let size = requests.and_then(|requests| requests.get("storage").map(|size| size.0.clone()));
        let size = size.map(|size| quantity::canonical(&size).unwrap_or(size));
        let annotations = claim.metadata.annotations.clone().unwrap_or_default();
        (claim.metadata.name.clone(), annotations, spec.access_modes, spec.storage_class_name, size)
    };
    let labels = |claim: &PersistentVolumeClaim| {
        let mut labels = claim.metadata.labels.clone().unwrap_or_default();
        // ToolHive adds a user's labels for the pods here as well.
        labels.extend(selector.clone());
        labels
    };
    fields(desired) == fields(live) && labels(desired) == labels(live)
}
