//! One control plane for all tests of a run.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};
use tokio::{
    process::Command,
    runtime::{Builder, Runtime},
    sync::OnceCell,
};

use crate::{ControlPlane, Namespace};

/// The variable that names the folder of the control plane which a test run shares.
pub const SHARED_DIR: &str = "SKEP_TEST_CONTROL_PLANE";

/// A namespace on the control plane that this run shares.
///
/// `make test` starts that control plane once for all test processes. Without it, the first test of a process starts
/// one, which ends with the process.
pub async fn namespace() -> Namespace {
    Namespace::create(folder().await).await
}

async fn folder() -> PathBuf {
    if let Some(folder) = env::var_os(SHARED_DIR) {
        return folder.into();
    }
    static OWN: OnceCell<PathBuf> = OnceCell::const_new();
    OWN.get_or_init(|| async {
        tokio::task::spawn_blocking(start_for_this_process).await.expect("it starts")
    })
    .await
    .clone()
}

/// Each test has its own runtime that ends with it; the control plane's links need one that stays.
fn start_for_this_process() -> PathBuf {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let plane = runtime.block_on(ControlPlane::start());
    let folder = plane.folder().to_owned();
    // Kept until the process ends; the guards of the processes then clean up.
    let _: &mut (Runtime, ControlPlane) = Box::leak(Box::new((runtime, plane)));
    folder
}

/// Runs a command with a control plane that all its tests share, and returns its exit code.
pub async fn share(program: &str, args: &[String]) -> Result<i32> {
    let plane = ControlPlane::try_start().await?;
    let status = Command::new(program)
        .args(args)
        .env(SHARED_DIR, plane.folder())
        .status()
        .await
        .with_context(|| format!("cannot run {program}"))?;
    Ok(status.code().unwrap_or(1))
}
