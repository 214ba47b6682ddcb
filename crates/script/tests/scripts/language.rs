//! What the language can do.

use serde_json::{Value, json};

use crate::{failure, result};

/// Asserts the results of expressions.
async fn assert_values(rows: &[(&str, Value)]) {
    for (expression, expected) in rows {
        let found = result(&format!("return {expression}")).await;
        assert_eq!(found, *expected, "{expression}");
    }
}

#[tokio::test]
async fn expressions_have_the_values_of_starlark() {
    assert_values(&[
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("7 // 2", json!(3)),
        ("-7 // 2", json!(-4)),
        ("-7 % 3", json!(2)),
        ("7 % -3", json!(-2)),
        ("7 / 2", json!(3.5)),
        ("2.5 // 1", json!(2.0)),
        ("1 << 10", json!(1024)),
        ("0xff & 0x0f | 0b100 ^ 0o7", json!(15)),
        ("~5", json!(-6)),
        ("1 == 1.0", json!(true)),
        ("True == 1", json!(false)),
        ("1 < 2 and 2 < 3", json!(true)),
        ("\"a\" < \"b\"", json!(true)),
        ("[1, 2] < [1, 3]", json!(true)),
        ("1 in [1, 2]", json!(true)),
        ("3 not in (1, 2)", json!(true)),
        ("\"b\" in \"abc\"", json!(true)),
        ("\"k\" in {\"k\": 1}", json!(true)),
        ("5 in range(0, 10, 5)", json!(true)),
        ("\"yes\" if [] else \"no\"", json!("no")),
        ("None or 3", json!(3)),
        ("0 and 3", json!(0)),
        ("not \"\"", json!(true)),
        ("[1, 2] + [3]", json!([1, 2, 3])),
        ("[0] * 3", json!([0, 0, 0])),
        ("\"ab\" * 2", json!("abab")),
        ("(1, 2) + (3,)", json!([1, 2, 3])),
        ("{\"a\": 1} | {\"b\": 2}", json!({"a": 1, "b": 2})),
        ("[1, 2, 3][-1]", json!(3)),
        ("[1, 2, 3, 4][1:3]", json!([2, 3])),
        ("[1, 2, 3, 4][::-1]", json!([4, 3, 2, 1])),
        ("[1, 2, 3, 4][::2]", json!([1, 3])),
        ("\"héllo\"[1:3]", json!("él")),
        ("\"abc\"[-1]", json!("c")),
        ("range(10)[2:8:3]", json!([2, 5])),
        ("[x * 2 for x in range(5) if x % 2]", json!([2, 6])),
        (
            "[(x, y) for x in range(2) for y in \"ab\".elems()]",
            json!([[0, "a"], [0, "b"], [1, "a"], [1, "b"]]),
        ),
        ("{k: v for k, v in [(\"a\", 1), (\"b\", 2)]}", json!({"a": 1, "b": 2})),
        ("(lambda x, y=2, *rest, **more: [x, y, rest, more])(1, 3, 4, z=5)", json!([1, 3, [4], {"z": 5}])),
        ("1 if True else fail()", json!(1)),
        ("{1: \"a\", None: \"b\"}", json!({"1": "a", "None": "b"})),
        ("18446744073709551615", json!(18446744073709551615u64)),
    ])
    .await;
}

#[tokio::test]
async fn functions_have_the_results_of_starlark() {
    assert_values(&[
        ("len(\"héllo\")", json!(5)),
        ("len({\"a\": 1})", json!(1)),
        ("str(1.0) + str([1, \"a\", None, True])", json!("1.0[1, \"a\", None, True]")),
        ("repr((1,))", json!("(1,)")),
        ("str(range(3))", json!("range(0, 3)")),
        ("int(\"12\") + int(3.9) + int(\"ff\", 16)", json!(270)),
        ("float(\"1.5\")", json!(1.5)),
        ("bool([0])", json!(true)),
        ("type(1) + type(\"\") + type([]) + type(None)", json!("intstringlistNoneType")),
        ("list((1, 2)) + list({\"a\": 1})", json!([1, 2, "a"])),
        ("dict([(\"a\", 1)], b=2)", json!({"a": 1, "b": 2})),
        ("sorted([3, 1, 2])", json!([1, 2, 3])),
        ("sorted([\"bb\", \"a\", \"cc\"], key=len)", json!(["a", "bb", "cc"])),
        ("sorted([\"bb\", \"a\", \"cc\"], key=len, reverse=True)", json!(["bb", "cc", "a"])),
        ("reversed([1, 2])", json!([2, 1])),
        ("max(1, 3, 2) + min([4, 5])", json!(7)),
        ("max([\"a\", \"ccc\", \"bb\"], key=lambda s: len(s))", json!("ccc")),
        ("enumerate([\"a\", \"b\"], 1)", json!([[1, "a"], [2, "b"]])),
        ("zip([1, 2], [\"a\", \"b\", \"c\"])", json!([[1, "a"], [2, "b"]])),
        ("any([0, 1])", json!(true)),
        ("all([0, 1])", json!(false)),
        ("abs(-3)", json!(3)),
        ("sum([1, 2.5])", json!(3.5)),
        ("hasattr(\"\", \"upper\") and not hasattr(1, \"upper\")", json!(true)),
        ("getattr(\"a\", \"upper\")()", json!("A")),
        ("json.decode('{\"a\": [1, null]}')", json!({"a": [1, null]})),
        ("json.encode({\"a\": (1, None)})", json!("{\"a\":[1,null]}")),
        ("len(set([1, 2, 2, 1.0]))", json!(2)),
        ("set([1, 2]) & set([2, 3])", json!([2])),
        ("set([1, 2]).union([3])", json!([1, 2, 3])),
        (
            "[int(\"0x1F\", 0), int(\"-0x1f\", 16), int(\"0b11\", 2), int(\"0o17\", 0)]",
            json!([31, -31, 3, 15]),
        ),
        ("[int(\"12\", 0), int(\"+7\"), int(\"00\", 0), int(\"0b1\", 16)]", json!([12, 7, 0, 177])),
        (
            "[str(range(1, 10, 2)), str(range(3)), str(range(5, 1))]",
            json!(["range(1, 10, 2)", "range(0, 3)", "range(5, 1)"]),
        ),
        ("[str(range(10)[1:8:2]), str(range(5)[::-1])]", json!(["range(1, 8, 2)", "range(4, -1, -1)"])),
    ])
    .await;
}

#[tokio::test]
async fn methods_have_the_results_of_starlark() {
    assert_values(&[
        ("\"a,b,c\".split(\",\")", json!(["a", "b", "c"])),
        ("\"a,b,c\".split(\",\", 1)", json!(["a", "b,c"])),
        ("\"a,b,c\".rsplit(\",\", 1)", json!(["a,b", "c"])),
        ("\" a  b \".split()", json!(["a", "b"])),
        ("\" a  b c \".split(None, 1)", json!(["a", "b c "])),
        ("\" a  b c \".rsplit(None, 1)", json!([" a  b", "c"])),
        ("\" a \".split(None, 0) + \" a \".rsplit(None, 0)", json!(["a ", " a"])),
        ("\"-\".join([\"a\", \"b\"])", json!("a-b")),
        ("\"Hello\".upper() + \"Hello\".lower()", json!("HELLOhello")),
        ("\"hello world\".title() + \"hELLO\".capitalize()", json!("Hello WorldHello")),
        ("\" x \".strip() + \"xxa\".lstrip(\"x\")", json!("xa")),
        ("\"héllo\".find(\"l\")", json!(2)),
        ("\"hello\".rfind(\"l\")", json!(3)),
        ("\"hello\".find(\"z\")", json!(-1)),
        ("\"hello\".count(\"l\")", json!(2)),
        ("\"hello\".replace(\"l\", \"L\", 1)", json!("heLlo")),
        ("\"a.b.c\".partition(\".\")", json!(["a", ".", "b.c"])),
        ("\"a.b.c\".rpartition(\".\")", json!(["a.b", ".", "c"])),
        ("\"abc\".startswith((\"x\", \"a\"))", json!(true)),
        ("\"abc\".removeprefix(\"a\").removesuffix(\"c\")", json!("b")),
        ("\"a\\nb\".splitlines()", json!(["a", "b"])),
        ("\"12\".isdigit() and \"ab\".isalpha() and \"A\".isupper()", json!(true)),
        ("\"{0} {1} {name!r} {{}}\".format(1, 2, name=\"x\")", json!("1 2 \"x\" {}")),
        ("\"{:.2f} {:>4} {:04d} {:,}\".format(1.234, \"a\", 7, 1234567)", json!("1.23    a 0007 1,234,567")),
        (
            "\"%s %d %r %.1f%% %(a)s\".replace(\" %(a)s\", \"\") % (\"a\", 2, \"b\", 9.96)",
            json!("a 2 \"b\" 10.0%"),
        ),
        ("\"%(a)s\" % {\"a\": 1}", json!("1")),
        ("\"%5d|%-5s|%x\" % (42, \"ab\", 255)", json!("   42|ab   |ff")),
        ("{\"a\": 1}.get(\"b\", 2)", json!(2)),
        ("{\"a\": 1}.items() + [{\"a\": 1}.keys(), {\"a\": 1}.values()]", json!([["a", 1], ["a"], [1]])),
        ("r\"\\n\" + \"\\x41\\u00e9\\t\"", json!("\\nAé\t")),
        ("\"\"\"a\nb\"\"\"", json!("a\nb")),
    ])
    .await;
}

#[tokio::test]
async fn statements_do_what_they_do_in_starlark() {
    for (script, expected) in [
        ("x = 1\nx += 2\nreturn x", json!(3)),
        ("a, (b, c) = 1, (2, 3)\nreturn [c, b, a]", json!([3, 2, 1])),
        (
            "d = {}\nd[\"a\"] = [1]\nd[\"a\"] += [2]\nd[\"n\"] = 1\nd[\"n\"] += 1\nreturn d",
            json!({"a": [1, 2], "n": 2}),
        ),
        ("l = [1]\nm = l\nm += [2]\nm.append(3)\nreturn l", json!([1, 2, 3])),
        (
            "l = [3, 1]\nl.insert(0, 9)\nl.pop()\nl.remove(3)\nl.extend([4, 5])\nreturn [l, l.index(5)]",
            json!([[9, 4, 5], 2]),
        ),
        (
            "out = []\nfor i in range(10):\n    if i == 2:\n        continue\n    if i > 4: break\n    out.append(i)\nreturn out",
            json!([0, 1, 3, 4]),
        ),
        ("x = 5\nif x < 3:\n  r = 1\nelif x < 6:\n  r = 2\nelse:\n  r = 3\nreturn r", json!(2)),
        ("def f(n):\n    return 1 if n < 2 else n * f(n - 1)\nreturn f(20)", json!(2432902008176640000i64)),
        ("def f(a, b=2, *, c=3):\n    return [a, b, c]\nreturn f(1, c=4)", json!([1, 2, 4])),
        ("def f(*args, **kw): return [args, kw]\nreturn f(*[1, 2], **{\"k\": 3})", json!([[1, 2], {"k": 3}])),
        (
            "def outer():\n    n = [0]\n    def add():\n        n[0] += 1\n        return n[0]\n    add()\n    return add()\nreturn outer()",
            json!(2),
        ),
        ("x = 1\ndef f(): return x\nx = 2\nreturn f()", json!(2)),
        ("for k, v in {\"a\": 1}.items():\n    return [k, v]", json!(["a", 1])),
        ("x = [1,\n     2,  # two\n]\nreturn x; pass", json!([1, 2])),
        ("x = 1 + \\\n  2\nreturn x", json!(3)),
        ("    x = 1\n    if x:\n        return x", json!(1)),
        ("l = [1]\nl.append(l)\nreturn str(l)", json!("[1, [...]]")),
        ("d = {}\nd[\"d\"] = [d]\nreturn repr(d)", json!("{\"d\": [{...}]}")),
        ("l = [1]\nreturn str([l, l])", json!("[[1], [1]]")),
        ("return {x: 1 for x in [1, 1]}", json!({"1": 1})),
        ("# nothing\n\nx = 1\n", json!(null)),
        ("return", json!(null)),
        ("1 + 1", json!(null)),
        ("s = set()\ns.add(1)\ns.add(1)\ns.discard(7)\nreturn len(s)", json!(1)),
        (
            "d = {\"b\": 1, \"a\": 2}\nd.update([(\"c\", 3)], d=4)\nd.pop(\"b\")\nd.setdefault(\"e\", 5)\nreturn list(d)",
            json!(["a", "c", "d", "e"]),
        ),
        (
            "def f():\n    for x in [1, 2]:\n        for y in [3, 4]:\n            if y == 4: return [x, y]\nl = [1]\nf()\nl.append(2)\nreturn l",
            json!([1, 2]),
        ),
    ] {
        assert_eq!(result(script).await, expected, "{script}");
    }
}

#[tokio::test]
async fn functions_made_for_the_items_of_a_list_see_different_ones() {
    assert_eq!(result("return [f() for f in [lambda: x for x in range(3)]]").await, json!([0, 1, 2]));
    // A loop has one variable, as in Starlark.
    let script = "fs = []\nfor x in range(3): fs.append(lambda: x)\nreturn [f() for f in fs]";
    assert_eq!(result(script).await, json!([2, 2, 2]));
}

#[tokio::test]
async fn what_changes_during_a_loop_is_an_error() {
    for (script, kind) in [
        ("l = [1]\nfor x in l: l.append(x)", "list"),
        ("d = {\"a\": 1}\nfor x in d: d[x + x] = 1", "dict"),
        ("l = [1]\nr = [l.append(x) for x in l]", "list"),
    ] {
        assert!(failure(script).await.contains(&format!("a {kind} cannot be changed while")), "{script}");
    }
}
