//! Expressions, each with the value that another implementation of Starlark has for it: that of Rust, as its package for Python has it.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::json;
use skep_script::Limits;

use crate::run_with;

/// Evaluates each line, a program as JSON, and prints its value, a text, or an empty line where it has none.
const EVALUATE: &str = r#"
import json, sys
import starlark
dialect, builtins = starlark.Dialect.extended(), starlark.Globals.extended_by([])
for line in sys.stdin:
    try:
        program = starlark.parse("program", json.loads(line), dialect=dialect)
        print(json.dumps(starlark.eval(starlark.Module(), program, builtins)))
    except starlark.StarlarkError:
        print()
"#;

/// Values of each type, with three spaces between.
const VALUES: &str = r#"
None   True   False   0   1   -7   2.5   -0.0   ""   "a"   "aB c,é"   []   [3, 1, 2]   ["b", "a"]   ()   (1, "a")   {}
{"a": 1, "b": [2]}   range(3)   range(5, 0, -2)
"#;

const OPERATORS: &str = "+ - * / // % == != < <= > >= in not_in and or & | ^ << >>";

/// Functions that take one value.
const FUNCTIONS: &str =
    "len str repr bool int float list tuple dict sorted reversed any all enumerate min max type abs zip";

/// What is added to a value.
const INDEXES: &str = r#"[0] [-1] [9] ["a"] [1:] [:-1] [::-1] [::2] [::0] [-2:9:1] [None:1] [2.0]"#;

/// Formats of one value.
const FORMATS: &str = "%s %r %d %x %o %c %e %g %f %% % %s,%s %(a)s %5d";

/// Methods, with the arguments that each is called with, after a value.
const METHODS: &str = r#"
"aB c, aB"   capitalize()   count("a")   count("")   count("a", 1)   count("B", -3, -1)   elems()   endswith("B")
"aB c, aB"   endswith(("x", "B"))   endswith("")   startswith(("a",))   find("B")   find("B", 2)   find("x")
"aB c, aB"   find("")   find("B", -2)   find("a", 9)   index("B")   index("x")   rfind("B")   rfind("B", 0, 3)
"aB c, aB"   rindex("x")   rindex("a")   lower()   upper()   title()   islower()   isupper()   istitle()
"aB c, aB"   join([])   join(["x", "y"])   join([1])   join("ab")   join(("x",))
"aB c, aB"   isalnum()   isalpha()   isdigit()   isspace()   partition(" ")   partition("x")   partition("")
"aB c, aB"   rpartition(" ")   rpartition("x")   removeprefix("aB")   removeprefix("x")   removesuffix("B")
"aB c, aB"   removesuffix("")   replace("a", "x")   replace("a", "x", 1)   replace("", "-")
"aB c, aB"   replace("a", "x", 0)   split(" ")   split()   split("a")   split("x")   split("")   split(" ", 1)
"aB c, aB"   split(None, 1)   rsplit(" ", 1)   rsplit()   rsplit("a")   rsplit("a", 1)   rsplit(None, 1)
"aB c, aB"   split(" ", 0)   strip("aB")   lstrip("a")   rstrip("B")   strip("xyz")   splitlines()   nothing()
"  x \n"   strip()   lstrip()   rstrip()   split()   rsplit()   split(" ")   splitlines()   isspace()
"a\nb\r\nc\n"   splitlines()   splitlines(True)   split("\n")   split()   splitlines(False)
""   capitalize()   title()   islower()   isalnum()   isdigit()   split()   split(" ")   splitlines()   elems()
"123"   isdigit()   isalnum()   isalpha()   isupper()   istitle()   islower()
"{} and {}"   format(1, 2)   format("a", [])   format(1)   format()   format(1, 2, 3)
"{1} {0}"   format(1, 2)   format(1)   format(True, None)
"{a} {b}"   format(a = 1, b = "x")   format(a = 1)   format(1)
"{{}} {!r}"   format("a")   format(1)
"{!s}"   format("a")   format({"k": "v"})
"{"   format(1)
"}"   format(1)
"{0} {}"   format(1, 2)
[3, 1, 2]   index(1)   index(9)   index(3, 1)   index(2, -1)   index(3, 0, 1)   append(4)   extend([4])   insert(0, 9)
[3, 1, 2]   insert(-1, 9)   insert(99, 9)   pop()   pop(0)   pop(-1)   pop(9)   remove(1)
[3, 1, 2]   remove(9)   clear()   sort()   count(1)   copy()   extend(1)   append()
[]   pop()   remove(1)   clear()   extend({"a": 1})   extend("ab")
{"a": 1, "b": 2}   get("a")   get("x")   get("x", 9)   get([])   keys()   values()   items()
{"a": 1, "b": 2}   pop("a")   pop("x")   pop("x", 0)   popitem()   setdefault("a", 5)   setdefault("c")   clear()   copy()
{"a": 1, "b": 2}   update({"c": 3})   update([("c", 3)])   update(c = 3)   update([1])
{}   popitem()   keys()   setdefault([], 1)   get(None)   pop(1, None)
(1, 2)   index(1)   count(1)
range(3)   index(1)
None   x()
1   real()
2.5   is_integer()
True   x()
"%s %r"   __mod__(1)
"é😀"   elems()   upper()   find("😀")   index("😀")   split("")   isalpha()   capitalize()
"ß"   upper()   title()   capitalize()   lower()
"ǆ"   upper()   title()   capitalize()   istitle()
"a-b c"   title()   istitle()   capitalize()
"A-B C"   istitle()   isupper()
"#;

/// What no table has.
const OTHERS: &str = r#"
[x for x in [1, 2, 3] if x != 2]   {x: x * x for x in range(3)}   [(x, y) for x in range(2) for y in range(x)]
[a + b for (a, b) in [(1, 2), (3, 4)]]   [a for a, b in [(1, 2, 3)]]   (lambda x, y = 2: x + y)(1)
(lambda *a, **k: (a, k))(1, 2, z = 3)   (lambda x: x)()   (lambda x: x)(1, x = 2)   (lambda x: x)(y = 2)
1 if [] else 2   1 < 2 and 2 < 3   1 < 2 < 3   not 1   - True   + 1   ~ 5   ~ 2.5   -(-3)
sorted([3, 1, 2], reverse = True)   sorted(["b", "A"], key = lambda x: x.lower())   sorted(["b", "A"], key = len)
sorted([1, "a"])   max([1, 3], key = lambda x: -x)   max(1, 2, 3)   min([])   min(1, "a")   max("abc")
zip([1, 2], [3])   zip()   list(zip([1, 2], "ab".elems()))   list(enumerate(["a"], 5))   int("0x1f", 16)
int("0x1f", 0)   int("-12")   int("1_000")   int(" 1")   int("z", 36)   int("1.5")   int(2.9)   int(-2.9)   int(1e30)
float("1e3")   float("nan")   float("inf")   float("x")   0.1 + 0.2   1e100   1.0   100000000000000000.0   1e-7
2 * 3.5 // 2   7.5 % 2   dict(a = 1)   dict([("a", 1)], b = 2)   dict([(1, 2, 3)])   "a" "b"   r"\n"
"\x41\u00e9\U0001F600\101"
"#;

struct Program {
    definitions: String,
    /// What it is about.
    expression: String,
}

impl Program {
    fn text(&self, keyword: &str) -> String {
        let Self { definitions, expression } = self;
        format!("{definitions}{keyword}repr({expression})\n")
    }
}

/// All expressions, and the scripts that a fuzzer starts with.
fn programs() -> Vec<Program> {
    let expressions = expressions().into_iter();
    let mut all: Vec<Program> =
        expressions.map(|expression| Program { definitions: String::new(), expression }).collect();
    for entry in fs::read_dir("../../fuzz/seeds/script").unwrap() {
        let lines = fs::read_to_string(entry.unwrap().path()).unwrap().replace('\n', "\n    ");
        all.push(Program { definitions: format!("def main():\n    {lines}\n"), expression: "main()".into() });
    }
    all
}

fn expressions() -> Vec<String> {
    let mut all: Vec<String> = parts(OTHERS).map(str::to_owned).collect();
    for left in parts(VALUES) {
        all.extend(FUNCTIONS.split(' ').map(|function| format!("{function}({left})")));
        all.extend(["not ", "-", "+", "~"].map(|operator| format!("{operator}({left})")));
        all.extend(INDEXES.split(' ').map(|index| format!("{left}{index}")));
        all.extend(FORMATS.split(' ').map(|format| format!("\"<{format}>\" % {left}")));
        for right in parts(VALUES) {
            let operators = OPERATORS.split(' ').map(|operator| operator.replace('_', " "));
            all.extend(operators.map(|operator| format!("({left}) {operator} ({right})")));
        }
    }
    for line in METHODS.trim().lines() {
        let mut calls = parts(line);
        let receiver = calls.next().unwrap();
        for call in calls {
            all.push(format!("{receiver}.{call}"));
            // What it has become.
            all.push(format!("(lambda x: (x.{call}, x))({receiver})"));
        }
    }
    all
}

fn parts(table: &str) -> impl Iterator<Item = &str> {
    table.trim().lines().flat_map(|line| line.split("   "))
}

/// The value that the other implementation has for each, as it is shown.
fn values_elsewhere(programs: &[Program]) -> Vec<Option<String>> {
    let python = Command::new("../../hack/pypi").arg("starlark").output().unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let python = String::from_utf8(python.stdout).unwrap();
    let mut child = Command::new(python.trim())
        .args(["-c", EVALUATE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: String = programs.iter().map(|program| json!(program.text("")).to_string() + "\n").collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().map(|line| (!line.is_empty()).then(|| serde_json::from_str(line).unwrap())).collect()
}

/// Where scripts differ on purpose, with the expressions. docs/virtual-servers.md lists the same.
const DELIBERATE: [(&str, &[&str]); 9] = [
    (
        "formats have the widths, characters and names of Python, and `%g` shows no `.0`",
        &["%c", "%5d", "%g", "%(a)s"],
    ),
    ("None and types are not joined by `|`", &["(None) | (None)", "(None) | (())"]),
    (
        "`int` skips spaces around a number, and takes no underscores in it",
        &["int(\" 1\")", "int(\"1_000\")"],
    ),
    ("an exponent is shown without a leading zero", &["1e-7"]),
    ("a slice may begin at None", &["[None:1]"]),
    ("`elems` is a list", &["elems()"]),
    ("nothing is split at an empty text", &["split(\"\")"]),
    ("`pop` counts a negative index from the end", &["pop(-1)"]),
    ("a zero that remains has the sign of the divisor", &["(-0.0) % (-7)"]),
];

/// Without what is only shown in another way: ranges from zero, and characters beyond ASCII.
fn comparable(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once('\\') {
        text += before;
        let digits = match after.chars().next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let code = after.get(1..=digits).and_then(|code| u32::from_str_radix(code, 16).ok());
        let beyond = code.filter(|code| *code > 0x7f).and_then(char::from_u32);
        match beyond {
            Some(beyond) => {
                // It is escaped twice where what is shown is shown again.
                if text.ends_with('\\') {
                    text.pop();
                }
                text.push(beyond);
                rest = &after[digits + 1..];
            }
            None => {
                text.push('\\');
                rest = after;
            }
        }
    }
    (text + rest).replace("range(0, ", "range(")
}

#[tokio::test]
async fn expressions_have_the_values_of_another_implementation_but_for_deliberate_differences() {
    let programs = programs();
    let theirs = values_elsewhere(&programs);
    assert_eq!(theirs.len(), programs.len());
    assert!(theirs.iter().flatten().count() > programs.len() / 5, "expressions have values");
    let mut unexpected = Vec::new();
    let mut seen = BTreeSet::new();
    for (program, theirs) in programs.iter().zip(theirs) {
        let outcome = run_with(&program.text("return "), &Limits::default(), json!({})).await;
        let ours: Option<String> = outcome.result.ok().map(|json| serde_json::from_str(&json).unwrap());
        if ours.as_deref().map(comparable) == theirs.as_deref().map(comparable) {
            continue;
        }
        let known =
            DELIBERATE.iter().find(|(_, parts)| parts.iter().any(|part| program.expression.contains(part)));
        match known {
            Some((difference, _)) => _ = seen.insert(*difference),
            None => unexpected.push(format!("{} is {ours:?} here, and {theirs:?} there", program.text(""))),
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    let document = fs::read_to_string("../../docs/virtual-servers.md").unwrap();
    for (difference, _) in DELIBERATE {
        assert!(seen.contains(difference), "{difference}: no expression differs, so remove it");
        assert!(document.contains(&format!("- {difference}\n")), "{difference} is not documented");
    }
}
