//! One object, for tests that read and change it.

use std::{fmt::Debug, time::Instant};

use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::wait::{PATIENCE, PAUSE};

/// An object by its name, whether it exists or not.
pub struct Handle<K> {
    api: Api<K>,
    name: String,
}

impl<K: Clone + Debug + Serialize + DeserializeOwned> Handle<K> {
    /// The object of this name.
    pub fn new(api: Api<K>, name: &str) -> Self {
        Self { api, name: name.into() }
    }

    /// The object, if it exists.
    pub async fn find(&self) -> Option<K> {
        self.api.get_opt(&self.name).await.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The object.
    pub async fn get(&self) -> K {
        self.find().await.unwrap_or_else(|| panic!("{} does not exist", self.name))
    }

    /// Changes the object by a merge patch.
    pub async fn patch(&self, patch: &Value) -> K {
        let patched = self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.unwrap_or_else(|error| panic!("{} {patch}: {error}", self.name))
    }

    /// Deletes the object.
    pub async fn delete(&self) {
        let deleted = self.api.delete(&self.name, &DeleteParams::default()).await;
        deleted.unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Waits until the object is as expected, and returns it. If it does not exist, it is none.
    pub async fn until(&self, what: &str, is: impl Fn(Option<&K>) -> bool) -> Option<K> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let object = self.find().await;
            if is(object.as_ref()) {
                return object;
            }
            let status = json!(object)["status"].take();
            assert!(Instant::now() < deadline, "{} is never {what}: {status:#}", self.name);
            sleep(PAUSE).await;
        }
    }
}
