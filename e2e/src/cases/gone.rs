//! What is deleted is gone.

use anyhow::{Result, ensure};

use super::{Cluster, everything, made};
use crate::{manifests::USERS, stopwatch::until};

pub(super) fn what_is_deleted_leaves_nothing(cluster: &Cluster<'_>) -> Result<()> {
    let names = || everything(cluster);
    let before = until("the cases before are gone", || {
        let before = names()?;
        Ok((!before.iter().any(|name| name.contains("Pod"))).then_some(before))
    })?;
    made(cluster, "short", "stdio")?;
    ensure!(names()? != before, "nothing was created");
    cluster.kubectl.run(&["delete", "mcpserver", "short", "-n", USERS])?;
    until("what the server left", || {
        let after = names()?;
        ensure!(after == before, "there were {before:?}, and there are {after:?}");
        Ok(Some(()))
    })
}
