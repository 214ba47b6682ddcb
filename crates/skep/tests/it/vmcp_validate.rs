//! `skep vmcp validate`, for files that the operator writes.

use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

/// The configurations of virtual servers in the ConfigMaps among these objects.
pub(crate) fn config_files(objects: &str) -> Vec<String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(objects).unwrap();
    let file = |object: &Value| {
        let is_virtual = object["metadata"]["name"].as_str()?.ends_with("-vmcp-config");
        let file =
            object["data"]["config.yaml"].as_str().filter(|_| is_virtual && object["kind"] == "ConfigMap");
        file.map(str::to_owned)
    };
    objects.iter().filter_map(file).collect()
}

/// What it reports about a configuration.
pub(crate) fn validate(config: &str) -> Result<(), String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("skep-validate-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.yaml");
    fs::write(&file, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    let output = command.args(["vmcp", "validate", "--config"]).arg(&file).output().unwrap();
    fs::remove_dir_all(&folder).ok();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
