//! Code mode: the tool that runs scripts, and what scripts may use.

use serde_json::json;
use skep_api::vmcp::CodeMode;
use skep_gateway::sessions::Holder;
use skep_script::{Limits, Pool};

use crate::{
    admission::{Admission, Admitted},
    limits,
};

/// The tool that runs scripts.
pub(crate) const EXECUTE_TOOL_SCRIPT: &str = "execute_tool_script";

/// What all scripts of a virtual server share.
pub(crate) struct Scripts {
    pub(crate) limits: Limits,
    pool: Pool,
    /// What each caller uses who has scripts running.
    running: Admission<Pool>,
}

impl Scripts {
    /// The tools of the virtual server itself.
    pub(crate) const OWN_TOOLS: [&str; 1] = [EXECUTE_TOOL_SCRIPT];

    /// Those of a configuration, if it has any.
    pub(crate) fn new(config: Option<&CodeMode>) -> Option<Self> {
        let config = config.filter(|config| config.enabled == Some(true))?;
        let default = Limits::default();
        let count = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
        let limits = Limits {
            steps: config.step_limit.and_then(|steps| u64::try_from(steps).ok()).unwrap_or(default.steps),
            parallel: count(config.parallel_max_concurrency).unwrap_or(default.parallel),
            call_time: config
                .tool_call_timeout
                .as_ref()
                .and_then(|time| time.to_std().ok())
                .unwrap_or(default.call_time),
            ..default
        };
        Some(Self { limits, pool: Pool::new(limits::SCRIPT_MEMORY), running: Admission::default() })
    }

    /// Lets a script of this caller run, unless too many do. They share the memory of the caller's scripts.
    pub(crate) fn admit(&self, holder: Holder) -> Option<Admitted<Pool>> {
        let pool = || self.pool.part(limits::SCRIPT_MEMORY_OF_ONE);
        self.running.admit(holder, limits::SCRIPTS_OF_ONE, pool)
    }
}

/// The tool as clients see it, before its description names the tools that a script can call.
pub(crate) fn tool() -> String {
    let script = json!({
        "type": "string",
        "description": "The script, in Starlark, a small subset of Python. It is the body of a function: return a value.",
        "examples": ["names = [user[\"name\"] for user in list_users()[\"users\"]]\nreturn sorted(names)"],
    });
    let data = json!({
        "type": "object",
        "description": "Values that the script can use as variables of these names.",
    });
    json!({
        "name": EXECUTE_TOOL_SCRIPT,
        "description": INTRODUCTION,
        "inputSchema": {
            "type": "object",
            "properties": {"script": script, "data": data},
            "required": ["script"],
            "examples": [{"script": "return [fetch(id=id) for id in ids]", "data": {"ids": [1, 2]}}],
        },
    })
    .to_string()
}

/// What a model should know about the tool.
pub(crate) const INTRODUCTION: &str = "\
Runs a script that calls other tools, so that many calls take one round trip and only what the script returns is read. \
Use it to call several tools, to loop over results, or to filter and join large ones.

The script is in Starlark, a small subset of Python, and is the body of a function: return a value, which becomes JSON. \
Tools are functions with named arguments: name(argument=value). call_tool(\"name\", argument=value) calls any tool by its \
name, and parallel([lambda: a(), lambda: b()]) calls several at once and returns their results in order. A tool returns its \
structured result, or {\"text\": ...} if it has only text: json.decode reads JSON in it. A tool that fails ends the script. \
print(...) adds to the logs. There are no while loops, classes, exceptions, imports or f-strings: use for, dicts, and \
\"{}\".format(x).";
