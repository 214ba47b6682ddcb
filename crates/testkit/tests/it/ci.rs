//! CI overwrites only what it has made.

use std::{fs, process::Command};

use skep_testkit::repository;

use crate::processes::scratch;

#[test]
fn ci_does_not_overwrite_a_folder_that_it_has_not_made() {
    let folder = scratch("ci");
    let (clone, others) = (folder.join("clone"), folder.join("mine-sources"));
    for made in [&clone.join(".ci"), &folder.join("shared/compat"), &others] {
        fs::create_dir_all(made).unwrap();
    }
    fs::copy(repository(".ci/run"), clone.join(".ci/run")).unwrap();
    let git = |at, arguments: &[&str]| {
        let author = ["-c", "user.name=skep", "-c", "user.email=skep@localhost"];
        let status = Command::new("git").args(author).args(arguments).current_dir(at).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    };
    git(&clone, &["init", "--quiet"]);
    git(&clone, &["commit", "--quiet", "--allow-empty", "--message", "first"]);
    // Another checkout, which happens to have this name, with work in it that is not committed.
    git(&others, &["init", "--quiet"]);
    fs::write(others.join("work"), "unsaved").unwrap();

    let mut run = Command::new("bash");
    run.arg(".ci/run").current_dir(&clone).env("CARGO_TARGET_DIR", "../mine");
    let output = run.output().unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("mine-sources was not made by CI, and is not overwritten"), "{errors}");
    assert_eq!(fs::read_to_string(others.join("work")).unwrap(), "unsaved");
    fs::remove_dir_all(folder).unwrap();
}
