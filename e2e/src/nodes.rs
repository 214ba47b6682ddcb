//! Several nodes at the same time, which share the cases: most of a case is waiting for a node.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader, Read, Write as _, stdout},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio, id},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use crate::{Args, cases, stopwatch::print_elapsed};

/// Runs the cases on this many nodes, and the migration of a recording on another.
pub(crate) fn run(args: &Args, count: usize) -> Result<ExitCode> {
    let begin = Instant::now();
    let folder = env::temp_dir().join(format!("skep-e2e-shared-{}", id()));
    fs::create_dir(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let shared = Shared(Some(folder.clone()));
    let result = run_all(args, count, &folder);
    let (passed, all) = (shared.passed(), cases::count());
    fs::remove_dir_all(&folder).ok();
    let passed = passed?;
    print_elapsed(begin, &format!("{passed} of {all} cases passed"));
    Ok(if result? && passed == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_all(args: &Args, count: usize, folder: &Path) -> Result<bool> {
    let mut commands = Vec::new();
    for number in 1..=count {
        commands.push(node(args, &number.to_string(), &["--shared".into(), folder.into()])?);
    }
    if let Some(recording) = &args.recording {
        commands.push(node(args, "recording", &["--recording".into(), recording.into()])?);
    }
    // Those that have started are waited for, also if another cannot be started.
    let mut nodes = Vec::new();
    let started = commands.iter_mut().try_for_each(|command| command.spawn().map(|node| nodes.push(node)));
    thread::scope(|scope| {
        let printed: Vec<_> = nodes
            .iter_mut()
            .filter_map(|node| node.stdout.take())
            .map(|output| scope.spawn(|| print_by_case(output)))
            .collect();
        for thread in printed {
            ensure!(thread.join().is_ok(), "the output of a node cannot be printed");
        }
        Ok(())
    })?;
    // Each is waited for, whatever the others return.
    let ended: Vec<_> = nodes.iter_mut().map(Child::wait).collect();
    let mut passed = true;
    started.context("cannot start this program again")?;
    for status in ended {
        passed &= status?.success();
    }
    Ok(passed)
}

/// The command that runs this program again, for one node.
fn node(args: &Args, name: &str, more: &[OsString]) -> Result<Command> {
    let mut given = env::args_os().skip(1);
    let mut command = Command::new(env::current_exe()?);
    while let Some(arg) = given.next() {
        if ["--nodes", "--recording", "--logs"].iter().any(|own| arg == *own) {
            given.next();
        } else {
            command.arg(arg);
        }
    }
    command.arg("--logs").arg(args.logs.join(name)).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command)
}

/// Prints what belongs to a case in one piece. It ends with the line of its result; what follows a failure belongs to the next.
fn print_by_case(output: impl Read) {
    let mut piece = String::new();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        piece.push_str(&line);
        piece.push('\n');
        if line.starts_with("ok ") {
            print(&mut piece);
        }
    }
    print(&mut piece);
}

fn print(piece: &mut String) {
    // There is nothing to be done if nothing reads it.
    stdout().write_all(piece.as_bytes()).ok();
    piece.clear();
}

/// Which cases are run by one of the nodes, and which have passed. Each has a file of its name.
pub(crate) struct Shared(pub(crate) Option<PathBuf>);

const PASSED: &str = "passed";

impl Shared {
    /// Whether the case is this node's to run.
    pub(crate) fn claim(&self, case: &str) -> bool {
        self.0.as_ref().is_none_or(|folder| fs::File::create_new(folder.join(case)).is_ok())
    }

    /// Records that a case has passed.
    pub(crate) fn pass(&self, case: &str) -> Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        fs::write(folder.join(case), PASSED).with_context(|| format!("cannot record that {case} has passed"))
    }

    fn passed(&self) -> Result<usize> {
        let Some(folder) = &self.0 else { return Ok(0) };
        let files = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>)?;
        Ok(files
            .iter()
            .filter(|file| fs::read(file.path()).is_ok_and(|text| text == PASSED.as_bytes()))
            .count())
    }
}
