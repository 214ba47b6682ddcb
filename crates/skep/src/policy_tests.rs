//! `skep test`: expectations about who may do what, checked without a cluster.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, ensure};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use skep_proxy::{Caller, Explanation, Outcome};

use crate::{
    explain::{Format, Subject, Tools, subjects},
    output::print,
};

/// Check expectations about who may do what, without a cluster.
///
/// The same code decides as in the proxy. A file of tests names the manifests, and what each caller may do:
///
///   manifests: [server.yaml]
///   tests:
///     - name: writers may delete
///       server: files
///       caller: {sub: alice, groups: [writers]}
///       tool: delete_file
///       arguments: {path: /tmp/a}
///       expect: allowed
///     - name: others see what they may read
///       caller: {sub: bob}
///       tools: [read_file, delete_file]
///       expect: [read_file]
#[derive(clap::Args)]
#[command(verbatim_doc_comment, after_help = "Examples:\n  skep test -f policy-tests.yaml")]
pub(crate) struct Args {
    /// A file of tests. Can be repeated.
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The namespace of objects without one.
    #[arg(short, long, default_value = "default")]
    namespace: String,

    /// What is printed: a line for each test, or a line of JSON.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

struct Tests {
    /// Files and folders, relative to the file of tests.
    manifests: Vec<PathBuf>,
    tests: Vec<Test>,
}

struct Test {
    name: String,
    server: Option<String>,
    /// The claims of the caller's token. A caller without any has no token.
    caller: Option<Map<String, Value>>,
    tool: Option<String>,
    prompt: Option<String>,
    resource: Option<String>,
    arguments: Map<String, Value>,
    /// The tools of the server, of which some are listed. Those of a virtual server are by backend.
    tools: Option<Tools>,
    expect: Expectation,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Expectation {
    Decision(Decision),
    /// The tools that are listed, in any order.
    Listed(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allowed,
    Denied,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut failed, mut count) = (0usize, 0usize);
    for file in &args.files {
        let tests = read(file)?;
        let subjects = subjects(&tests.manifests, &args.namespace)?;
        for test in &tests.tests {
            let place = || format!("{}: {}", file.display(), test.name);
            count += 1;
            let reason = runtime.block_on(test.failure(&subjects)).with_context(place)?;
            failed += usize::from(reason.is_some());
            print(&match (args.output, reason) {
                (Format::Json, reason) => {
                    let (file, name) = (file.display().to_string(), &test.name);
                    let passed = reason.is_none();
                    format!("{}\n", json!({"file": file, "name": name, "passed": passed, "reason": reason}))
                }
                (Format::Text, None) => format!("ok      {}\n", test.name),
                (Format::Text, Some(reason)) => format!("FAILED  {}: {reason}\n", test.name),
            })?;
        }
    }
    ensure!(failed == 0, "{failed} of {count} tests failed");
    match args.output {
        Format::Json => Ok(()),
        Format::Text => print(&format!("{count} tests passed\n")),
    }
}

fn read(file: &Path) -> anyhow::Result<Tests> {
    let parsed = || {
        let fields: Map<String, Value> = serde_saphyr::from_str(&fs::read_to_string(file)?)?;
        Tests::parse(Fields(fields))
    };
    let mut tests = parsed().with_context(|| file.display().to_string())?;
    let folder = file.parent().unwrap_or(Path::new("."));
    for manifest in &mut tests.manifests {
        *manifest = folder.join(&*manifest);
    }
    Ok(tests)
}

/// The fields that are left of an object, so that an error names one.
struct Fields(Map<String, Value>);

impl Fields {
    fn optional<T: DeserializeOwned>(&mut self, name: &str, what: &str) -> anyhow::Result<Option<T>> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let parsed = serde_json::from_value(value);
                parsed.map(Some).map_err(|_| anyhow!("{name}: must be {what}"))
            }
        }
    }

    fn required<T: DeserializeOwned>(&mut self, name: &str, what: &str) -> anyhow::Result<T> {
        self.optional(name, what)?.with_context(|| format!("{name}: is missing: it must be {what}"))
    }

    /// There may be no others.
    fn end(self) -> anyhow::Result<()> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(other) => Err(anyhow!("{other}: there is no such field")),
        }
    }
}

impl Tests {
    fn parse(mut fields: Fields) -> anyhow::Result<Self> {
        let manifests = fields.required("manifests", "a list of files")?;
        let tests: Vec<Map<String, Value>> = fields.required("tests", "a list of tests")?;
        fields.end()?;
        ensure!(!tests.is_empty(), "tests: there are none");
        let test = |(number, test): (usize, Map<String, Value>)| {
            let place = match test.get("name").and_then(Value::as_str) {
                Some(name) => format!("tests[{number}] ({name})"),
                None => format!("tests[{number}]"),
            };
            Test::parse(Fields(test)).context(place)
        };
        let tests = tests.into_iter().enumerate().map(test).collect::<anyhow::Result<_>>()?;
        Ok(Self { manifests, tests })
    }
}

impl Test {
    fn parse(mut fields: Fields) -> anyhow::Result<Self> {
        const TEXT: &str = "a string";
        let test = Self {
            name: fields.required("name", TEXT)?,
            server: fields.optional("server", TEXT)?,
            caller: fields.optional("caller", "an object of claims")?,
            tool: fields.optional("tool", TEXT)?,
            prompt: fields.optional("prompt", TEXT)?,
            resource: fields.optional("resource", TEXT)?,
            arguments: fields.optional("arguments", "an object")?.unwrap_or_default(),
            tools: fields.optional("tools", "a list of tools, or one for each backend")?,
            expect: fields.required("expect", "allowed, denied, or a list of tools")?,
        };
        fields.end()?;
        Ok(test)
    }

    /// Why the expectation is not met, if it is not.
    async fn failure(&self, subjects: &[Subject]) -> anyhow::Result<Option<String>> {
        let subject = Subject::select(subjects, self.server.as_deref())?;
        let caller = self.caller.clone().map_or(Caller::Anonymous, Caller::Claims);
        match (&self.tools, &self.expect) {
            (Some(tools), Expectation::Listed(expected)) => {
                let mut listed = subject.listed(&caller, tools).await?;
                let mut expected = expected.clone();
                listed.sort();
                expected.sort();
                Ok((listed != expected).then(|| format!("listed are {listed:?}, and not {expected:?}")))
            }
            (None, Expectation::Decision(expected)) => {
                let (method, params) = self.request()?;
                let explained = subject.explain(&caller, method, &params).await?;
                let details = |step: &Explanation| step.details.join("; ");
                let undecided = explained.steps.iter().find(|step| step.outcome == Outcome::Undecided);
                if let Some(step) = undecided {
                    return Ok(Some(format!(
                        "{} does not decide it here: {}",
                        step.middleware,
                        details(step)
                    )));
                }
                let rejection = explained.steps.iter().find_map(|step| {
                    Some(format!("{} {} ({})", step.middleware, step.outcome.rejection()?, details(step)))
                });
                Ok(match (expected, rejection) {
                    (Decision::Allowed, Some(rejection)) => Some(rejection),
                    (Decision::Denied, None) => Some("it is allowed".into()),
                    _ => None,
                })
            }
            (Some(_), Expectation::Decision(_)) => {
                anyhow::bail!("tools: the expectation must be a list of tools")
            }
            (None, Expectation::Listed(_)) => anyhow::bail!("expect: a list of tools needs tools"),
        }
    }

    fn request(&self) -> anyhow::Result<(&'static str, Value)> {
        Ok(match (&self.tool, &self.prompt, &self.resource) {
            (Some(tool), None, None) => ("tools/call", json!({"name": tool, "arguments": self.arguments})),
            (None, Some(prompt), None) => {
                ("prompts/get", json!({"name": prompt, "arguments": self.arguments}))
            }
            (None, None, Some(uri)) => ("resources/read", json!({"uri": uri})),
            _ => anyhow::bail!("name one of tool, prompt, resource and tools"),
        })
    }
}
