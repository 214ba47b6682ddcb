//! A deleted server leaves nothing behind.

use anyhow::{Result, ensure};

use super::{Cluster, create_server, everything};
use crate::{manifests::USERS, stopwatch::until};

pub(super) fn a_deleted_server_leaves_nothing(cluster: &Cluster<'_>) -> Result<()> {
    let names = || everything(cluster);
    let before = until("the objects of earlier cases are deleted", || {
        let before = names()?;
        Ok((!before.iter().any(|name| name.contains("Pod"))).then_some(before))
    })?;
    create_server(cluster, "short", "stdio")?;
    ensure!(names()? != before, "nothing was created");
    cluster.kubectl.run(&["delete", "mcpserver", "short", "-n", USERS])?;
    until("everything is deleted", || {
        let after = names()?;
        ensure!(after == before, "there were {before:?}, and there are {after:?}");
        Ok(Some(()))
    })
}
