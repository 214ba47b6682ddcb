//! One pass over the objects of a CRD.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Error, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::json;

use super::{MANAGER, work::Work};

/// Objects that are listed at a time.
const PAGE: u32 = 100;

/// Why objects may still be stored in another version.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The CRD cannot be read.
    #[error("the CRD cannot be read: {0}")]
    Definition(Error),
    /// The objects cannot be listed.
    #[error("its objects cannot be listed: {0}")]
    List(Error),
    /// Objects are rejected by the API server, or cannot be written at the moment.
    #[error("{failed} of its objects cannot be migrated; {first}: {error}")]
    Restore {
        /// How many.
        failed: usize,
        /// The first of them.
        first: String,
        /// Its error.
        error: Error,
    },
    /// The CRD changed meanwhile, so it is processed again.
    #[error("the CRD has changed meanwhile")]
    Changed,
    /// The CRD's list of stored versions cannot be reduced.
    #[error("status.storedVersions cannot be written: {0}")]
    Trim(Error),
}

impl MigrationError {
    /// The action for the event. `None` if no event is published.
    pub(super) fn action(&self) -> Option<&'static str> {
        match self {
            Self::Definition(_) | Self::Changed => None,
            Self::List(_) | Self::Restore { .. } => Some("RestoreCRs"),
            Self::Trim(_) => Some("PatchStoredVersions"),
        }
    }
}

/// Lets the API server store every object in the storage version. Returns how many there are.
pub(super) async fn rewrite(client: &Client, work: &Work) -> Result<usize, MigrationError> {
    let all = Api::<DynamicObject>::all_with(client.clone(), &work.resource);
    let mut page = ListParams::default().limit(PAGE);
    let (mut objects, mut failed, mut first) = (0, 0, None);
    loop {
        let list = all.list_metadata(&page).await.map_err(MigrationError::List)?;
        for object in &list.items {
            objects += 1;
            let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
            let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &work.resource);
            // The API server writes an empty patch as well, if the encoding would differ from the stored one.
            let unchanged =
                json!({"metadata": {"resourceVersion": object.resource_version(), "uid": object.uid()}});
            let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
            let Err(error) = api.patch_metadata(&name, &params, &Patch::Merge(&unchanged)).await else {
                continue;
            };
            match &error {
                // Another writer has stored it again, or deleted it.
                Error::Api(status) if matches!(status.code, 404 | 409) => {}
                // This object is rejected, which does not affect the others.
                Error::Api(status) if matches!(status.code, 400 | 413 | 422) => {
                    failed += 1;
                    first.get_or_insert((format!("{namespace}/{name}"), error));
                }
                _ => {
                    return Err(MigrationError::Restore {
                        failed: failed + 1,
                        first: format!("{namespace}/{name}"),
                        error,
                    });
                }
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    match first {
        Some((first, error)) => Err(MigrationError::Restore { failed, first, error }),
        None => Ok(objects),
    }
}

/// Records that all objects are stored in the storage version, unless the CRD has changed.
pub(super) async fn trim(api: &Api<CustomResourceDefinition>, work: &Work) -> Result<(), MigrationError> {
    let patch = json!({
        "metadata": {"resourceVersion": work.resource_version},
        "status": {"storedVersions": [work.storage()]},
    });
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    match api.patch_status(work.crd(), &params, &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Err(MigrationError::Changed),
        Err(error) => Err(MigrationError::Trim(error)),
    }
}
