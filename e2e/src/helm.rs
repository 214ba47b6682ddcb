//! What a user installs with: helm, and the charts of this repository.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{manifests::SYSTEM, programs::repository};

/// helm, as an administrator.
pub(crate) struct Helm<'a> {
    pub(crate) program: &'a Path,
    pub(crate) kubeconfig: &'a Path,
}

impl Helm<'_> {
    /// Installs a chart of this repository under its own name, or changes what is installed, and waits until its pods are ready.
    pub(crate) fn upgrade(&self, chart: &str, values: &[&str]) -> Result<()> {
        let folder = repository("charts")?.join(chart);
        self.install(chart, &folder, SYSTEM, values)
    }

    /// The same with any chart, in any namespace. A value that starts with `--` is a flag.
    pub(crate) fn install(
        &self,
        release: &str,
        chart: &Path,
        namespace: &str,
        values: &[&str],
    ) -> Result<()> {
        let chart = chart.to_str().context("the path of the chart is no text")?;
        let mut args =
            vec!["upgrade", "--install", release, chart, "--namespace", namespace, "--create-namespace"];
        args.extend(["--wait", "--timeout", "180s"]);
        for value in values {
            match value.starts_with("--") {
                true => args.push(value),
                false => args.extend(["--set", value]),
            }
        }
        self.run(&args)
    }

    pub(crate) fn uninstall(&self, release: &str) -> Result<()> {
        self.run(&["uninstall", release, "--namespace", SYSTEM, "--wait", "--timeout", "180s"])
    }

    /// Without these it would read and write the user's own settings.
    pub(crate) fn own_settings(&self) -> [(&'static str, PathBuf); 3] {
        ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"]
            .map(|name| (name, self.kubeconfig.with_extension("helm")))
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let output = Command::new(self.program)
            .args(args)
            .arg("--kubeconfig")
            .arg(self.kubeconfig)
            .envs(self.own_settings())
            .output()
            .context("cannot start helm")?;
        ensure!(
            output.status.success(),
            "helm {}: {}",
            args[0],
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }
}
