//! `skep test`: expectations about who may do what, checked without a cluster.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use skep_config::field::FieldPath;
use skep_proxy::{Caller, Explanation, Outcome};

use crate::{
    explain::{Subject, Tools, subjects},
    manifests::Lines,
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

    /// The format of the results.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line for each test.
    Text,
    /// A line of JSON for each test.
    Json,
    /// A JUnit report, for CI systems.
    Junit,
}

/// The result of a test.
#[derive(Serialize)]
struct TestResult {
    file: String,
    line: Option<u64>,
    name: String,
    passed: bool,
    /// Why it failed.
    reason: Option<String>,
}

struct Tests {
    /// Files and folders, relative to the file of tests.
    manifests: Vec<PathBuf>,
    tests: Vec<Test>,
}

struct Test {
    name: String,
    line: Option<u64>,
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
    let mut results = Vec::new();
    for path in &args.files {
        let tests = read(path)?;
        let subjects = subjects(&tests.manifests, &args.namespace)?;
        for test in tests.tests {
            let file = path.display().to_string();
            let place = || format!("{file}: {}", test.name);
            let reason = runtime.block_on(test.failure(&subjects)).with_context(place)?;
            let result =
                TestResult { file, line: test.line, name: test.name, passed: reason.is_none(), reason };
            match args.output {
                Format::Text => print(&result.text())?,
                Format::Json => print(&format!("{}\n", json!(result)))?,
                Format::Junit => {}
            }
            results.push(result);
        }
    }
    if args.output == Format::Junit {
        print(&junit(&results))?;
    }
    let (count, failed) = counts(&results);
    ensure!(failed == 0, "{failed} of {count} tests failed");
    match args.output {
        Format::Text => print(&format!("{count} tests passed\n")),
        Format::Json | Format::Junit => Ok(()),
    }
}

/// The number of results, and of failures among them.
fn counts(results: &[TestResult]) -> (usize, usize) {
    (results.len(), results.iter().filter(|result| !result.passed).count())
}

impl TestResult {
    fn text(&self) -> String {
        let Some(reason) = &self.reason else { return format!("ok      {}\n", self.name) };
        let line = self.line.map(|line| format!("{line}:")).unwrap_or_default();
        format!("FAILED  {}:{line} {}: {reason}\n", self.file, self.name)
    }

    fn junit(&self) -> String {
        let (file, name) = (xml(&self.file), xml(&self.name));
        let line = self.line.map(|line| format!(" line=\"{line}\"")).unwrap_or_default();
        let failure = self.reason.as_ref().map(|reason| format!("<failure message=\"{}\"/>", xml(reason)));
        format!(
            "  <testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\"{line}>{}</testcase>\n",
            failure.unwrap_or_default()
        )
    }
}

/// A report in the XML of JUnit.
fn junit(results: &[TestResult]) -> String {
    let (count, failed) = counts(results);
    let cases: String = results.iter().map(TestResult::junit).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"skep test\" tests=\"{count}\" failures=\"{failed}\">\n{cases}</testsuite>\n"
    )
}

/// A text as the value of an attribute. XML cannot express most control characters.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn read(file: &Path) -> anyhow::Result<Tests> {
    let parsed = || {
        let text = fs::read_to_string(file)?;
        let fields: Map<String, Value> = serde_saphyr::from_str(&text)?;
        Tests::parse(Fields(fields), &Lines::new(&text))
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
    fn parse(mut fields: Fields, lines: &Lines) -> anyhow::Result<Self> {
        let manifests = fields.required("manifests", "a list of files")?;
        let tests: Vec<Map<String, Value>> = fields.required("tests", "a list of tests")?;
        fields.end()?;
        ensure!(!tests.is_empty(), "tests: there are none");
        let test = |(number, test): (usize, Map<String, Value>)| {
            let place = match test.get("name").and_then(Value::as_str) {
                Some(name) => format!("tests[{number}] ({name})"),
                None => format!("tests[{number}]"),
            };
            let line = lines.line(0, &FieldPath::from("tests").index(number));
            Test::parse(Fields(test), line).context(place)
        };
        let tests = tests.into_iter().enumerate().map(test).collect::<anyhow::Result<_>>()?;
        Ok(Self { manifests, tests })
    }
}

impl Test {
    fn parse(mut fields: Fields, line: Option<u64>) -> anyhow::Result<Self> {
        const TEXT: &str = "a string";
        let test = Self {
            line,
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
