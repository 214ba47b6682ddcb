//! Scripts that try to use more than they may.

use std::time::Duration;

use serde_json::{Map, Value, json};
use skep_script::{CallError, Host, Limits, Pool, Script, run};

use crate::run_with;

/// Scripts that would use all memory, the stack or the processor for ever, and the limit that ends each.
fn bombs() -> Vec<(String, &'static str)> {
    const MEMORY: &str = "too much memory";
    const STEPS: &str = "too many steps";
    let repeated = |open: &str, close: &str, count: usize| open.repeat(count) + "1" + &close.repeat(count);
    let mut bombs: Vec<(String, &str)> = [
        ("for x in range(1000000000000): pass", STEPS),
        ("def f():\n    for x in range(1000000000): g()\ndef g():\n    for x in range(1000000000): pass\nf()", STEPS),
        ("return \"a\" * 1000000000", MEMORY),
        ("return \"a\" * (1 << 100)", MEMORY),
        ("return [0] * 1000000000", MEMORY),
        ("return (1, 2) * 1000000000000", MEMORY),
        ("s = \"a\"\nfor x in range(100): s = s + s", MEMORY),
        ("s = \"ab\"\nfor x in range(100): s = s.join([s, s, s])", MEMORY),
        ("s = \"aa\"\nfor x in range(100): s = s.replace(\"a\", s)", MEMORY),
        ("s = \"a\"\nfor x in range(100): s = \"{0}{0}\".format(s)", MEMORY),
        ("s = \"a\"\nfor x in range(100): s = \"%s%s\" % (s, s)", MEMORY),
        ("s = \"a\"\nfor x in range(100): s = repr(s + s)", MEMORY),
        ("s = \"\\x00\"\nfor x in range(100): s = repr(s)", MEMORY),
        ("s = \"a\"\nfor x in range(100): s = json.encode([s, s])", "KiB as JSON"),
        ("l = [1]\nfor x in range(100): l = l + l", MEMORY),
        ("l = [1]\nfor x in range(100): l.extend(l)", MEMORY),
        ("l = [1]\nfor x in range(100): l += l", MEMORY),
        ("l = [1]\nfor x in range(100): l = l * 2", MEMORY),
        ("t = (1,)\nfor x in range(100): t = t + t", MEMORY),
        ("return list(range(1000000000000))", MEMORY),
        ("return sorted(range(1000000000000))", MEMORY),
        ("return sum(range(1000000000000))", MEMORY),
        ("return dict([(x, 1) for x in range(1000000)])", STEPS),
        ("return enumerate(range(1000000000))", MEMORY),
        ("return zip(range(1000000000), range(1000000000))", MEMORY),
        ("return set(range(1000000000))", MEMORY),
        ("return print(*range(1000000000))", MEMORY),
        ("return (\"a\" * 10000000).elems()", MEMORY),
        ("return (\"a,\" * 1000000).split(\",\")", MEMORY),
        ("return (\"a\\n\" * 10000000).splitlines()", MEMORY),
        ("s = \"a\" * 1000000\nfor x in range(10000): s.upper()", STEPS),
        ("s = \"a\" * 10000000\nfor x in range(10000): s.find(\"b\")", STEPS),
        ("s = \"a\" * 10000000\nfor x in range(10000): s == s + \"\"", STEPS),
        ("s = \"a\" * 10000000\nfor x in range(10000): len(s)", STEPS),
        ("s = \"a\" * 1000000\nfor x in range(10000): s.strip(s)", STEPS),
        ("l = list(range(100000))\nfor x in range(100000): -1 in l", STEPS),
        ("l = list(range(100000))\nfor x in range(100000): l.index(99999)", STEPS),
        ("l = list(range(100000))\nfor x in range(100000): l.insert(0, 1)", STEPS),
        ("l = list(range(20000))\nfor x in range(100000): sorted(l)", STEPS),
        ("x = 1\nfor i in range(1000): x = x * 1000003", "128 bits"),
        ("return 1 << 100000000", "128 bits"),
        ("return range(1 << 126)", "the range is too large"),
        ("def f(): return f()\nreturn f()", "nested deeper than 64"),
        ("f = lambda f: f(f)\nreturn f(f)", "nested deeper than 64"),
        ("def f(n): return parallel([lambda: f(n)])\nreturn f(1)", "nested deeper than 64"),
        ("def f(x): return sorted([1], key=f)\nreturn f(1)", "nested deeper than 64"),
        ("l = []\nl.append(l)\nreturn l", "nested deeper than 64"),
        ("l = []\nfor x in range(1000): l = [l]\nreturn str(l)", "nested deeper than 64"),
        ("a = []\na.append(a)\nb = []\nb.append(b)\nreturn a == b", "nested deeper than 64"),
        ("a = []\na.append(a)\nb = []\nb.append(b)\nreturn a < b", "nested deeper than 64"),
        ("t = ()\nfor x in range(1000): t = (t,)\nreturn {t: 1}", "nested deeper than 64"),
        ("l = [1]\nfor x in range(50): l = [l, l]\nreturn l", "larger than 1024 KiB"),
        ("l = [1]\nfor x in range(50): l = [l, l]\nreturn str(l)", STEPS),
        ("a = [1]\nb = [1]\nfor x in range(50):\n    a = [a, a]\n    b = [b, b]\nreturn a == b", STEPS),
        ("t = (1,)\nfor x in range(50): t = (t, t)\nreturn {t: 1}", MEMORY),
        ("return \"x\" * 2000000", "larger than 1024 KiB"),
        ("return echo(x=\"x\" * 2000000)", "larger than 1024 KiB"),
        ("for x in range(5000): echo()", "it may make 1000 calls"),
        ("return parallel([lambda: echo()] * 5000)", "it may make 1000 calls"),
        ("return parallel([echo] * 100000)", MEMORY),
        ("def f(): return parallel([f, f])\nreturn f()", MEMORY),
        ("return \"{:99999999}\".format(1)", "is not supported"),
        ("return \"%99999999d\" % 1", "is not supported"),
        ("return json.decode(\"[\" * 100000)", "recursion limit"),
        ("return json.decode(\"[\" + \"{},\" * 1000000 + \"{}]\")", MEMORY),
        ("fail(\"x\" * 10000000)", "fail: xxx"),
    ]
    .map(|(script, limit)| (script.to_owned(), limit))
    .into();
    for (open, close) in
        [("(", ")"), ("[", "]"), ("{1: ", "}"), ("-", ""), ("not ", ""), ("lambda: ", ""), ("f(", ")")]
    {
        bombs.push((format!("return {}", repeated(open, close, 10_000)), "nested deeper than"));
    }
    for nested in ["x[", "[1 for x in [", "1 if 1 else ", "{x: 1 for x in ["] {
        bombs.push((format!("return {}", repeated(nested, "", 10_000)), "n"));
    }
    for chain in ["1 + ", "x.a", "1 and ", "1 or ", "1 | "] {
        bombs.push((format!("x = 1\nreturn {}1", chain.repeat(10_000)), "the expression is too long"));
    }
    bombs.push((format!("x = 1\nreturn x{}", "()".repeat(10_000)), "the expression is too long"));
    bombs.push((format!("x = 1\nreturn x{}", "[0]".repeat(10_000)), "the expression is too long"));
    let blocks: String = (0..1_000).map(|depth| " ".repeat(depth % 200) + "if 1:\n").collect();
    bombs.push((blocks, "blocks are nested deeper than"));
    bombs.push((format!("return [{}]", "1,".repeat(200_000)), "longer than 256 KiB"));
    let wide = format!("def f(n):\n  return [{}f(n + 1)]\nreturn f(0)", "1,".repeat(100_000));
    bombs.push((wide, STEPS));
    bombs
}

/// How long this thread has run: other processes must not make a test fail.
fn processor_time() -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(spent.split_whitespace().next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn every_bomb_ends_at_its_limit_and_soon() {
    let mut wrong = Vec::new();
    for (script, limit) in bombs() {
        let started = processor_time();
        let outcome = run_with(&script, &Limits::default(), json!({})).await;
        let shown: String = script.chars().take(200).collect();
        let took = processor_time() - started;
        let error = match outcome.result {
            Ok(result) => result,
            Err(error) => error.to_string(),
        };
        // Without optimization. A limit that does not hold takes for ever, or all memory.
        let is_bounded = took < Duration::from_secs(10) && error.len() < 10_000;
        if !error.contains(limit) || !is_bounded {
            wrong.push(format!("{shown}\n{took:?}: {}", error.chars().take(500).collect::<String>()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn what_is_not_used_any_more_does_not_count_as_memory() {
    let limits = Limits { steps: 10_000_000, ..Limits::default() };
    let script = "d = {}\nfor x in range(2000):\n    s = \"a\" * 100000\n    d[x % 10] = [s, lambda: s]\nreturn len(d)";
    assert_eq!(run_with(script, &limits, json!({})).await.result.unwrap(), "10");
}

#[tokio::test]
async fn prints_are_kept_up_to_the_limit_of_the_output() {
    let outcome = run_with("for x in range(2000): print(\"x\" * 1000)", &Limits::default(), json!({})).await;
    assert!(outcome.result.is_ok());
    assert!(outcome.logs.len() < (1 << 20) + 100);
    assert!(outcome.logs.ends_with("[more was printed than is kept]\n"));
}

#[tokio::test]
async fn all_scripts_together_use_no_more_than_their_pool() {
    struct Waiting(tokio::sync::Notify, tokio::sync::Notify);

    impl Host for Waiting {
        async fn call(&self, _: &str, _: String) -> Result<Value, CallError> {
            self.0.notify_one();
            self.1.notified().await;
            Ok(Value::Null)
        }
    }

    let (pool, limits) = (Pool::new(4 << 20), Limits::default());
    let host = Waiting(Default::default(), Default::default());
    let script = |source| Script { source, data: Map::new(), tools: vec!["wait".into()] };
    let large = run(script("s = \"a\" * 3000000\nwait()\nreturn len(s)"), &limits, &pool, &host);
    let others = async {
        host.0.notified().await;
        let second = run(script("return len(\"a\" * 3000000)"), &limits, &pool, &host).await;
        let error = second.result.unwrap_err().to_string();
        assert!(error.contains("too many scripts are running"), "{error}");
        assert_eq!(run(script("return 1"), &limits, &pool, &host).await.result.unwrap(), "1");
        host.1.notify_one();
    };
    let (outcome, ()) = tokio::join!(large, others);
    assert_eq!(outcome.result.unwrap(), "3000000");
    assert_eq!(pool.used(), 0);
}

#[tokio::test]
async fn a_script_that_computes_lets_others_have_their_turn() {
    let limits = Limits { steps: u64::MAX, script_time: Duration::from_secs(3600), ..Limits::default() };
    let endless = run_with("for x in range(1000000000000): pass", &limits, json!({}));
    // On one thread: the other one ends although the first never does.
    tokio::select! {
        biased;
        _ = endless => panic!("it has ended"),
        outcome = run_with("return sum([echo(n=x)[\"arguments\"][\"n\"] for x in range(100)])", &limits, json!({})) => {
            assert_eq!(outcome.result.unwrap(), "4950");
        }
    }
}
