//! What ToolHive's operator left in a cluster, where its programs are not at hand: its CRDs and the objects that it wrote, from a folder that
//! is not part of this repository. Its proxies are skep's, under ToolHive's name.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use skep_config::annotations::CONTENT_CHECKSUM;

use super::{
    cluster::Cluster,
    text,
    toolhive::{Calls, Images, Proxy, Toolhive},
};
use crate::{
    manifests::{EVERYTHING, USERS},
    node::Node,
};

const MANAGER: &str = "--field-manager=thv-operator";
/// The proxies, and the folders of what was recorded for them. The second one waits for tokens of an issuer that does not exist here.
const PROXIES: [Proxy; 2] = [
    Proxy { name: "yardstick", transport: "stdio", calls: Calls::Continuous },
    Proxy { name: "api-proxy", transport: "streamable-http", calls: Calls::None },
];
const FOLDERS: [&str; 2] = ["mcpserver_yardstick_stdio", "mcpremoteproxy_with_bearer_token"];
/// The image of the recorded server.
const SERVER: &str = "ghcr.io/stackloklabs/yardstick/yardstick-server:1.1.1";
const RECORDED_RUNNER: &str = "ghcr.io/stacklok/toolhive/proxyrunner:latest";
/// The same as hack/image names it. A node without a registry cannot have an image whose tag is `latest`, which is always pulled.
const RUNNER: &str = "ghcr.io/stacklok/toolhive/proxyrunner:recorded";

pub(super) struct Recording<'a> {
    folder: &'a Path,
    images: Images,
}

impl<'a> Recording<'a> {
    /// Imports the images that its objects name.
    pub(super) fn new(folder: &'a Path, node: &Node<'_>) -> Result<Self> {
        node.import("recorded-proxyrunner")?;
        node.ctr(&["images", "tag", EVERYTHING, SERVER])?;
        Ok(Self {
            folder,
            images: Images { runner: RUNNER.into(), vmcp: RUNNER.replace("proxyrunner", "vmcp") },
        })
    }

    fn crds(&self) -> Result<Vec<Value>> {
        let folder = self.folder.join("crds");
        let files = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        files.map(|file| crd(&file?.path())).collect()
    }

    /// The objects of users, or those that ToolHive's operator created for them.
    fn objects(&self, cluster: &Cluster<'_>, file: &str) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for folder in FOLDERS {
            let path = self.folder.join("takeover").join(folder).join(file);
            let recorded = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            // In its own field, and in the names of Services.
            let here =
                recorded.replace(": NS\n", &format!(": {USERS}\n")).replace(".NS.", &format!(".{USERS}."));
            all.extend(cluster.kubectl.parse(&with_checksums(&here, &cluster.kubectl.parse(&here)?))?);
        }
        Ok(all)
    }

    /// What ToolHive's operator created, as it would have in this cluster.
    fn children(&self, cluster: &Cluster<'_>) -> Result<Vec<Value>> {
        let mut all = self.objects(cluster, "objects.yaml")?;
        // Pods come last, when their service accounts exist.
        all.reverse();
        for child in &mut all {
            let owner = &mut child["metadata"]["ownerReferences"][0];
            let live = cluster.kubectl.get(&[text(owner, "/kind"), text(owner, "/name"), "-n", USERS])?;
            owner["uid"] = live["metadata"]["uid"].clone();
            if let Some(spec) = child.pointer_mut("/spec").and_then(Value::as_object_mut) {
                // The cluster assigns its own.
                spec.retain(|name, _| !name.starts_with("clusterIP"));
            }
            let container = "/spec/template/spec/containers/0";
            if let Some(container) =
                child.pointer_mut(container).filter(|one| one["image"] == RECORDED_RUNNER)
            {
                container["image"] = json!(RUNNER);
                container["imagePullPolicy"] = json!("IfNotPresent");
            }
        }
        Ok(all)
    }
}

/// The file with the checksums of these ConfigMaps, which depend on the namespace.
fn with_checksums(file: &str, objects: &[Value]) -> String {
    objects.iter().fold(file.to_owned(), |file, object| {
        let entries = |pointer: &str| {
            let entries = object.pointer(pointer).cloned().unwrap_or_default();
            serde_json::from_value::<BTreeMap<String, String>>(entries).unwrap_or_default()
        };
        let mut annotations = entries("/metadata/annotations");
        let Some(recorded) = annotations.remove(CONTENT_CHECKSUM) else { return file };
        let checksum = skep_config::checksum(&entries("/data"), &entries("/metadata/labels"), &annotations);
        file.replace(&recorded, &checksum)
    })
}

/// A recorded CRD has its schema once, for all versions.
fn crd(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut crd: Value = serde_json::from_str(&text)?;
    let schema = crd["schemaOfEveryVersion"].take();
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["schema"] = json!({"openAPIV3Schema": schema});
    }
    crd.as_object_mut().context("a CRD is no object")?.remove("schemaOfEveryVersion");
    Ok(crd)
}

impl Toolhive for Recording<'_> {
    fn images(&self) -> &Images {
        &self.images
    }

    fn proxies(&self) -> &'static [Proxy] {
        &PROXIES
    }

    fn install(&self, cluster: &Cluster<'_>) -> Result<()> {
        let crds = self.crds()?;
        // As Helm 3 does.
        cluster.kubectl.send(&["create", "--field-manager=helm"], &crds)?;
        for crd in &crds {
            let name = format!("crd/{}", text(crd, "/metadata/name"));
            cluster.kubectl.run(&["wait", "--for=condition=established", &name, "--timeout=60s"])?;
        }
        cluster.kubectl.apply(&self.objects(cluster, "input.yaml")?)?;
        cluster.kubectl.send(&["create", MANAGER], &self.children(cluster)?)?;
        PROXIES.into_iter().try_for_each(|proxy| cluster.wait_until_ready(proxy))
    }

    /// It does not run.
    fn stop(&self, _: &Cluster<'_>) -> Result<()> {
        Ok(())
    }

    /// Its operator overwrites objects as a whole.
    fn start(&self, cluster: &Cluster<'_>) -> Result<()> {
        cluster.kubectl.send(&["replace", MANAGER], &self.children(cluster)?)?;
        PROXIES.into_iter().try_for_each(|proxy| cluster.wait_until_ready(proxy))
    }

    fn log(&self, _: &Cluster<'_>) -> Result<String> {
        Ok(String::new())
    }
}
