//! Nothing outlives the test process.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use skep_testkit::process::{Process, is_running};

fn ends_soon(pid: u32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_running(pid) && Instant::now() < deadline {
        sleep(Duration::from_millis(20));
    }
    !is_running(pid)
}

pub(crate) fn scratch(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("skep-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_dropped_process_has_ended() {
    let folder = scratch("dropped");
    let process = Process::start(Path::new("sleep"), ["300"], &folder).unwrap();
    let pid = process.pid();
    assert!(is_running(pid));
    drop(process);
    assert!(!is_running(pid));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_process_that_exits_is_reported_with_its_output() {
    let folder = scratch("ended");
    let process = Process::start(Path::new("sh"), ["-c", "echo no such flag >&2; exit 3"], &folder).unwrap();
    assert!(ends_soon(process.pid()));
    let error = process.check().unwrap_err().to_string();
    assert!(error.contains("no such flag"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

/// The body of [`a_killed_test_leaves_nothing_running`], run in its own process.
#[test]
#[ignore = "run by a_killed_test_leaves_nothing_running"]
fn start_a_process_and_hang() {
    let folder = scratch("hang");
    let process = Process::start(Path::new("sleep"), ["300"], &folder).unwrap();
    println!("\npid {}", process.pid());
    sleep(Duration::from_secs(300));
}

#[test]
fn a_killed_test_leaves_nothing_running() {
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::start_a_process_and_hang", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines();
    let pid = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("pid ")?.parse().ok()).unwrap();
    assert!(is_running(pid));
    test.kill().unwrap();
    test.wait().unwrap();
    assert!(ends_soon(pid), "the process outlived the test that started it");
    fs::remove_dir_all(std::env::temp_dir().join(format!("skep-hang-{}", test.id()))).unwrap();
}
