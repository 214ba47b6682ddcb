//! Runs the code of a script. Threads take turns, and wait for tools without blocking anything else.

mod bind;
mod step;
mod thread;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use serde_json::Value as Json;
use tokio::time::{Instant, timeout};

use crate::{
    builtins::Arguments,
    compile::Code,
    error::{Checked, Fault, ScriptError},
    host::{CallError, Host},
    meter::Meter,
    state::State,
    value::Value,
};
use thread::{Join, Pause, Thread};

/// How many steps a thread takes before others have their turn.
const TURN: u64 = 2_000;

/// What a thread takes beside its stack.
const THREAD: usize = 1_024;

/// A running script.
pub(crate) struct Machine<'a> {
    pub(crate) state: State,
    source: &'a str,
    threads: Vec<Option<Thread>>,
    ready: VecDeque<usize>,
    /// Calls that wait for others to end.
    queue: VecDeque<Call>,
    calls: usize,
}

/// A call of a tool that a thread waits for.
struct Call {
    thread: usize,
    tool: u32,
    /// An object, as JSON.
    arguments: String,
}

/// The end of a call: its thread, what it took, and the result.
type Ended = (usize, usize, Option<Result<Json, CallError>>);

impl<'a> Machine<'a> {
    pub(crate) fn new(source: &'a str, state: State, main: Arc<Code>) -> Self {
        let steps = state.limits.steps;
        let thread = Thread::new(main, Meter::new(steps), None);
        Self {
            state,
            source,
            threads: vec![Some(thread)],
            ready: VecDeque::from([0]),
            queue: VecDeque::new(),
            calls: 0,
        }
    }

    /// Runs the script until it ends. Returns its result as JSON.
    pub(crate) async fn run<H: Host>(&mut self, host: &H) -> Result<String, ScriptError> {
        let limit = self.state.limits.script_time;
        match within(limit, host, self.run_threads(host)).await {
            Some(result) => result,
            None => {
                let message = format!("the script takes longer than {limit:?}");
                Err(self.error(0, Fault::new(message)))
            }
        }
    }

    async fn run_threads<H: Host>(&mut self, host: &H) -> Result<String, ScriptError> {
        let mut running: FuturesUnordered<BoxFuture<'_, Ended>> = FuturesUnordered::new();
        loop {
            while running.len() < self.state.limits.parallel
                && let Some(call) = self.queue.pop_front()
            {
                running.push(self.send(host, call));
            }
            if let Some(id) = self.ready.pop_front() {
                if let Some(result) = self.turn(id)? {
                    return Ok(result);
                }
                tokio::task::yield_now().await;
                while let Some(Some(ended)) = running.next().now_or_never() {
                    self.end_call(ended)?;
                }
            } else if let Some(ended) = running.next().await {
                self.end_call(ended)?;
            } else {
                return Err(ScriptError::whole("the script waits for nothing"));
            }
        }
    }

    fn send<'h, H: Host>(&self, host: &'h H, call: Call) -> BoxFuture<'h, Ended> {
        let tools = self.state.tools.clone();
        let limit = self.state.limits.call_time;
        async move {
            let Call { thread, tool, arguments } = call;
            let size = arguments.len();
            let name = tools.get(tool as usize).map_or("", |name| &**name);
            (thread, size, within(limit, host, host.call(name, arguments)).await)
        }
        .boxed()
    }

    /// Goes on with the thread that has made a call.
    fn end_call(&mut self, (id, size, outcome): Ended) -> Result<(), ScriptError> {
        self.state.heap.release(size);
        let limit = self.state.limits.call_time;
        let result = match outcome {
            Some(Ok(json)) => Ok(json),
            Some(Err(CallError(message))) => Err(Fault::new(message)),
            None => Err(Fault::new(format!("the tool does not respond within {limit:?}"))),
        };
        let value = result.and_then(|json| self.with_meter(id, |state| state.value_of(&json)));
        match value {
            Ok(value) => {
                self.resume(id, value);
                Ok(())
            }
            Err(fault) => Err(self.error(id, fault)),
        }
    }

    /// Does something that counts as steps of a thread.
    fn with_meter<T>(&mut self, id: usize, act: impl FnOnce(&mut State) -> Checked<T>) -> Checked<T> {
        let Some(Some(thread)) = self.threads.get_mut(id) else {
            return Err(Fault::new("the thread has ended"));
        };
        std::mem::swap(&mut self.state.meter, &mut thread.meter);
        let done = act(&mut self.state);
        std::mem::swap(&mut self.state.meter, &mut thread.meter);
        done
    }

    fn resume(&mut self, id: usize, value: Value) {
        if let Some(Some(thread)) = self.threads.get_mut(id) {
            let reserved = std::mem::take(&mut thread.waiting);
            self.state.heap.release(reserved);
            thread.stack.push(value);
            self.ready.push_back(id);
        }
    }

    /// Lets a thread take a turn. Returns the result of the script, if it ends.
    fn turn(&mut self, id: usize) -> Result<Option<String>, ScriptError> {
        if self.state.heap.should_collect() {
            self.collect();
        }
        let Some(mut thread) = self.threads.get_mut(id).and_then(Option::take) else { return Ok(None) };
        std::mem::swap(&mut self.state.meter, &mut thread.meter);
        let paused = thread.run(&mut self.state, TURN);
        std::mem::swap(&mut self.state.meter, &mut thread.meter);
        self.threads[id] = Some(thread);
        let acted = paused.and_then(|paused| self.act(id, paused));
        acted.map_err(|fault| self.error(id, fault))
    }

    fn act(&mut self, id: usize, paused: Pause) -> Checked<Option<String>> {
        match paused {
            Pause::Turn => self.ready.push_back(id),
            Pause::Tool(tool, arguments) => self.call(id, tool, arguments)?,
            Pause::Parallel(functions) => self.fork(id, functions)?,
            Pause::End(value) => return self.end(id, value),
        }
        Ok(None)
    }

    /// Positional arguments of a tool get names.
    fn call(&mut self, id: usize, tool: u32, arguments: Arguments) -> Checked<()> {
        self.calls += 1;
        let limit = self.state.limits.calls;
        if self.calls > limit {
            return Err(Fault::new(format!("the script calls too many tools: it may make {limit} calls")));
        }
        let positional = arguments.positional.iter().enumerate();
        let positional = positional.map(|(index, value)| (format!("arg{index}"), *value));
        let named = arguments.named.iter().map(|(name, value)| (name.to_string(), *value));
        let mut object = String::from("{");
        for (name, value) in positional.chain(named) {
            let json = self.with_meter(id, |state| state.json(value, state.limits.output))?;
            if object.len() > 1 {
                object.push(',');
            }
            object += &format!("{}:{json}", Json::from(name));
            if object.len() > self.state.limits.output {
                return Err(Fault::new("the arguments of the call are too large"));
            }
        }
        object.push('}');
        self.state.heap.reserve(object.len())?;
        self.park(id)?;
        self.queue.push_back(Call { thread: id, tool, arguments: object });
        Ok(())
    }

    /// Counts the stack of a thread that waits.
    fn park(&mut self, id: usize) -> Checked<()> {
        if let Some(Some(thread)) = self.threads.get_mut(id) {
            let size = thread.uncounted();
            self.state.heap.reserve(size)?;
            thread.waiting = size;
        }
        Ok(())
    }

    /// Starts a thread for each function. Each may take its share of the steps that are left.
    fn fork(&mut self, id: usize, functions: Vec<Value>) -> Checked<()> {
        let count = functions.len();
        let results = vec![Value::None; count];
        self.state.heap.reserve(count.saturating_mul(THREAD))?;
        self.park(id)?;
        if count == 0 {
            let none = self.state.heap.list(results)?;
            self.resume(id, none);
            return Ok(());
        }
        let Some(Some(parent)) = self.threads.get_mut(id) else { return Ok(()) };
        let depth = parent.depth() + 1;
        let share = parent.meter.left() / count as u64;
        parent.join = Some(Join { results, left: count });
        for (index, function) in functions.into_iter().enumerate() {
            let thread = Thread::calling(function, Meter::new(share), (id, index), depth);
            self.ready.push_back(self.threads.len());
            self.threads.push(Some(thread));
        }
        Ok(())
    }

    fn end(&mut self, id: usize, value: Value) -> Checked<Option<String>> {
        let Some(Some(thread)) = self.threads.get(id) else { return Ok(None) };
        let Some((parent, index)) = thread.parent else {
            return self.with_meter(id, |state| state.json(value, state.limits.output)).map(Some);
        };
        let used = thread.meter.used;
        self.threads[id] = None;
        self.state.heap.release(THREAD);
        let Some(Some(waiting)) = self.threads.get_mut(parent) else { return Ok(None) };
        let Some(join) = &mut waiting.join else { return Ok(None) };
        if let Some(result) = join.results.get_mut(index) {
            *result = value;
        }
        join.left -= 1;
        let is_done = join.left == 0;
        waiting.meter.step(used)?;
        if is_done && let Some(join) = waiting.join.take() {
            let results = self.state.heap.list(join.results)?;
            self.resume(parent, results);
        }
        Ok(None)
    }

    fn collect(&mut self) {
        let state = &self.state;
        let mut roots: Vec<Value> = Vec::new();
        roots.extend(state.constants.iter().chain(&state.globals).chain(&state.prelude));
        for thread in self.threads.iter().flatten() {
            thread.add_roots(&mut roots);
        }
        self.state.heap.collect(roots.into_iter());
    }

    /// The error with the places where a thread is, and where those are that wait for it.
    fn error(&self, id: usize, fault: Fault) -> ScriptError {
        let mut places = Vec::new();
        let mut next = Some(id);
        while let Some(Some(thread)) = next.and_then(|id| self.threads.get(id)) {
            places.extend(thread.places());
            next = thread.parent.map(|(parent, _)| parent);
        }
        ScriptError::at(self.source, fault.0, &places)
    }
}

/// The outcome of something that may take so long, without the time in which the user is waited for.
async fn within<H: Host, T>(limit: Duration, host: &H, act: impl Future<Output = T>) -> Option<T> {
    let mut act = std::pin::pin!(act);
    let (started, before) = (Instant::now(), host.input_time());
    loop {
        let allowed = limit + host.input_time().saturating_sub(before);
        let left = allowed.saturating_sub(started.elapsed());
        if left.is_zero() {
            return None;
        }
        if let Ok(done) = timeout(left, &mut act).await {
            return Some(done);
        }
    }
}
