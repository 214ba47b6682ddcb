use std::process::Command;

use super::{files, root, shown};
use crate::vmcp_validate::ConfigFiles;

#[test]
fn every_example_can_be_rendered_without_a_cluster() {
    let examples = files(&root().join("examples"), "yaml");
    assert!(examples.len() > 15, "{examples:?}");
    for file in examples {
        let output =
            Command::new(env!("CARGO_BIN_EXE_skep")).args(["render", "-f"]).arg(&file).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{}: {complaint}", shown(&file));
    }
}

#[test]
fn every_example_is_in_the_list_of_examples() {
    let folder = root().join("examples");
    let list = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for file in files(&folder, "yaml") {
        let link = format!("]({})", file.strip_prefix(&folder).unwrap().display());
        assert!(list.contains(&link), "examples/README.md does not have {link}");
    }
}

#[test]
fn every_virtual_server_of_the_examples_has_a_file_that_its_pods_accept() {
    let mut count = 0;
    for file in files(&root().join("examples"), "yaml") {
        let output =
            Command::new(env!("CARGO_BIN_EXE_skep")).args(["render", "-f"]).arg(&file).output().unwrap();
        for files in ConfigFiles::of(&String::from_utf8_lossy(&output.stdout)) {
            assert_eq!(files.validate().err(), None, "{}", shown(&file));
            count += 1;
        }
    }
    assert!(count >= 6, "{count}");
}
