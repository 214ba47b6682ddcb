//! A shell beside the node, for manual tests.

use std::{
    env,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{Args, helm::Helm, node::Node, programs::path};

/// Starts the node, installs the charts as they are, and waits until the shell ends.
pub(crate) fn run(args: &Args, folder: &Path) -> Result<ExitCode> {
    let node = Node::start(args, folder)?;
    let kubeconfig = &node.kubectl.kubeconfig;
    let helm = Helm { program: &args.helm, kubeconfig };
    helm.upgrade("skep-crds", &[])?;
    helm.upgrade("skep", &[])?;
    eprintln!("The node runs until this shell ends. kubectl, helm and skep are those of this repository.");
    // The programs of a user come first.
    let here = env::current_exe()?;
    let own = [args.helm.parent(), here.parent(), Some(&args.programs)];
    let status = Command::new("bash")
        .env("PATH", path(own.into_iter().flatten())?)
        .env("KUBECONFIG", kubeconfig)
        .envs(helm.own_settings())
        .status()
        .context("cannot start bash")?;
    node.check()?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
