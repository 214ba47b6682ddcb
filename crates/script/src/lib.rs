//! Scripts in Starlark that call tools.
//!
//! A script is the body of a function: it may `return` a value, which becomes JSON. It calls tools as functions, and has no
//! other effect: no files, no network, no clock. It comes from a caller that may be hostile, so that everything that it uses
//! is limited from inside ([`Limits`]), and every operation is counted before it is done: the [`syntax`] is not nested
//! deeper than a bound, the [`machine`] has a stack of its own, so that a script never uses that of the process, and the
//! [`heap`] counts the bytes of all values.
//!
//! What a call of a tool does is up to the [`Host`]: nothing here does I/O. A script that waits for tools blocks nothing.

mod builtins;
mod compile;
mod decode;
mod deep;
mod error;
mod globals;
mod heap;
mod host;
mod index;
mod limits;
mod machine;
mod meter;
mod operators;
mod show;
mod state;
mod syntax;
mod value;

pub use error::{Place, ScriptError};
pub use globals::identifier;
pub use host::{CallError, Host};
pub use limits::{Limits, Pool};

use serde_json::{Map, Value};

use compile::program;
use heap::Heap;
use limits::Lease;
use machine::Machine;
use meter::Meter;
use state::{Logs, State};
use syntax::parse;

/// A script that is to run.
#[derive(Debug)]
pub struct Script<'a> {
    /// The source.
    pub source: &'a str,
    /// Values that it can use, by their names.
    pub data: Map<String, Value>,
    /// The names of the tools that it can call.
    pub tools: Vec<String>,
}

/// How a script ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its result as JSON.
    pub result: Result<String, ScriptError>,
    /// What it printed, line by line.
    pub logs: String,
}

/// Runs a script.
pub async fn run<H: Host>(script: Script<'_>, limits: &Limits, pool: &Pool, host: &H) -> Outcome {
    let failed = |error: ScriptError| Outcome { result: Err(error), logs: String::new() };
    let Script { source, data, tools } = script;
    if source.trim().is_empty() {
        return failed(ScriptError::whole("the script is empty"));
    }
    if source.len() > limits.source {
        let message = format!("the script is longer than {} KiB", limits.source >> 10);
        return failed(ScriptError::whole(message));
    }
    let statements = match parse(source) {
        Ok(statements) => statements,
        Err(error) => return failed(ScriptError::located(source, error)),
    };
    let mut state = State {
        heap: Heap::new(limits.memory, Lease::new(pool.clone())),
        meter: Meter::new(u64::MAX),
        limits: limits.clone(),
        logs: Logs::default(),
        tools: tools.into(),
        constants: Vec::new(),
        globals: Vec::new(),
        prelude: Vec::new(),
    };
    let names = match state.define_all(&data).and_then(|names| state.define_prelude().map(|()| names)) {
        Ok(names) => names,
        Err(fault) => return failed(ScriptError::whole(fault.0)),
    };
    let program = match program(&statements, &names) {
        Ok(program) => program,
        Err(error) => return failed(ScriptError::located(source, error)),
    };
    if let Err(fault) = state.load_constants(&program.constants) {
        return failed(ScriptError::whole(fault.0));
    }
    drop((statements, data, names));
    let mut machine = Machine::new(source, state, program.main);
    let result = machine.run(host).await;
    Outcome { result, logs: machine.state.logs.text }
}
