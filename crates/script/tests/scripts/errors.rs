//! What a model sees of its mistakes.

use serde_json::json;
use skep_script::Limits;

use crate::{failure, run_with};

#[tokio::test]
async fn an_error_shows_the_line_and_the_cause() {
    assert_eq!(
        failure("x = 1\nreturn x // 0").await,
        "line 2, column 10: division by zero\n    return x // 0\n             ^"
    );
    assert_eq!(
        failure("def f(x):\n    return x[\"b\"]\n\nreturn f({\"a\": 1})").await,
        "line 2, column 13: the dict has no key \"b\": it has [\"a\"]\n        return x[\"b\"]\n                ^\n\
         called from line 4, column 9:\n    return f({\"a\": 1})"
    );
    assert_eq!(
        failure("return sorted([1, 2],\n  key=lambda x: x.y)").await,
        "line 2, column 18: an int has no attribute y\n      key=lambda x: x.y)\n                     ^\n\
         called from line 1, column 14:\n    return sorted([1, 2],"
    );
}

#[tokio::test]
async fn mistakes_are_named_so_that_a_model_can_correct_them() {
    for (script, message) in [
        ("return (", "'(' is never closed"),
        ("return 1)", "')' closes nothing"),
        ("return [1)", "')' does not close '['"),
        ("while True: pass", "while is not part of Starlark: use for with range"),
        ("try:\n  pass", "try is not part of Starlark"),
        ("import os", "import is not part of Starlark"),
        ("load(\"x\", \"y\")\nreturn 1", "load is not available"),
        ("return f\"{x}\"", "f-strings are not part of Starlark"),
        ("return 2 ** 3", "** is not part of Starlark"),
        ("return 1 < 2 < 3", "comparisons cannot be chained"),
        ("return (x for x in [])", "generators are not part of Starlark"),
        ("return {1, 2}", "a set is written as set([...])"),
        ("x = 1\n  y = 2", "unexpected indentation"),
        ("if True:\nreturn 1", "expected an indented block"),
        ("if True:\n    x = 1\n  y = 2", "the indentation fits no outer block"),
        ("return nothing()", "nothing is not defined"),
        ("return mytool()", "mytool is not defined: is it my_tool?"),
        ("return {\"a\": 1, \"a\": 2}", "the dict has the key \"a\" twice"),
        ("return \"{0} {}\".format(1, 2)", "fields with numbers, or without, and not both"),
        ("return int(\"0x0x1f\", 16)", "\"0x0x1f\" is no int of base 16"),
        ("return int(\"--1\")", "\"--1\" is no int of base 10"),
        ("return int(\"012\", 0)", "\"012\" is no int of base 0"),
        ("return int(1, 10)", "base is for strings only"),
        ("x.y = 1", "attributes cannot be assigned to"),
        ("f() = 1", "this cannot be assigned to"),
        ("break", "break outside of a loop"),
        ("return \"a", "the string is never closed"),
        ("x = \"a\nreturn x", "the string is not closed in its line"),
        ("return \"a\" + 1", "+ is not defined for a string and an int: use str"),
        ("return [1][5]", "the index 5 is out of range: there are 1 items"),
        ("return {\"a\": 1}.a", "a dict has no attribute a: use [\"a\"]"),
        ("return 1()", "an int cannot be called"),
        ("for x in \"abc\": pass", "a string cannot be iterated over: use its elems()"),
        ("a, b = [1]", "2 values are expected, and there are 1"),
        ("if False: x = 1\nreturn x", "x has no value yet"),
        ("def f(a): pass\nf()", "f needs an argument for a"),
        ("def f(a): pass\nf(1, 2)", "f takes 1 positional arguments, and 2 are given"),
        ("def f(a): pass\nf(1, a=2)", "f has two arguments for a"),
        ("def f(a): pass\nf(b=2)", "f has no parameter b"),
        ("return {[]: 1}", "a list cannot be a key"),
        ("return sorted([1, \"a\"])", "have no order"),
        ("fail(\"no\", 1)", "fail: no 1"),
        ("return len", "a builtin_function_or_method cannot be JSON"),
        ("return float(\"nan\")", "nan cannot be JSON"),
        ("return json.decode(\"{\")", "the string cannot be decoded"),
        ("", "the script is empty"),
    ] {
        let found = failure(script).await;
        assert!(found.contains(message), "{script}\n{found}");
    }
}

#[tokio::test]
async fn what_was_printed_before_an_error_is_there() {
    let outcome =
        run_with("print(\"a\", 1, sep=\"-\")\nprint([None])\nfail()", &Limits::default(), json!({})).await;
    assert!(outcome.result.is_err());
    assert_eq!(outcome.logs, "a-1\n[None]\n");
}
