//! What skep has added to the configurations of clients, so that it removes nothing else.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Context;
use serde_json::Value;

/// The entries that were added, by client and name.
pub(super) struct Added {
    file: PathBuf,
    entries: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Added {
    pub(super) fn read(file: PathBuf) -> Self {
        let entries = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { file, entries: entries.unwrap_or_default() }
    }

    /// The entries of a client.
    pub(super) fn of(&mut self, client: &str) -> &mut BTreeMap<String, Value> {
        self.entries.entry(client.to_owned()).or_default()
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let failed = || format!("cannot write {}", self.file.display());
        let new = self.file.with_extension("new");
        fs::write(&new, serde_json::to_vec_pretty(&self.entries)?).with_context(failed)?;
        fs::rename(new, &self.file).with_context(failed)
    }
}
