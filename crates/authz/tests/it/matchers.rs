//! Expressions over claims.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use skep_authz::{EvaluationError, Matcher};

fn claims() -> Value {
    json!({
        "sub": "ann", "email": "ann@example.org", "email_verified": true, "level": 3, "ratio": 0.5, "none": null,
        "groups": ["admins", "readers"], "realm_access": {"roles": ["ops"]}, "url:claim": "x",
        "big": 9_007_199_254_740_993_u64,
    })
}

fn evaluate(text: &str) -> Result<bool, EvaluationError> {
    let matcher = Matcher::compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let answer = matcher.evaluate(claims().as_object().unwrap());
    assert_eq!(matcher.matches(claims().as_object().unwrap()), answer == Ok(true), "{text}");
    answer
}

fn compile_error(text: &str) -> String {
    Matcher::compile(text).err().unwrap_or_else(|| panic!("{text} is taken")).to_string()
}

#[test]
fn an_expression_matches_claims_or_not() {
    for (text, expected) in [
        ("true", true),
        (r#"claims.sub == "ann""#, true),
        (r#"claims["sub"] == 'bob'"#, false),
        (r#"claims["url:claim"] == "x""#, true),
        (r#""admins" in claims.groups && claims.email_verified"#, true),
        (r#""ops" in claims.realm_access.roles"#, true),
        ("claims.level >= 3 && claims.level == 3 && claims.level < 3.5", true),
        ("claims.ratio == 0.5", true),
        ("claims.none == null", true),
        (r#"claims.email.endsWith("@example.org") && claims.email.startsWith("ann")"#, true),
        (r#"claims.email.matches("^[a-z]+@example[.]org$") && matches(claims.sub, "^ann$")"#, true),
        (r#"claims.groups.exists(group, group.contains("min"))"#, true),
        ("claims.groups.all(group, group.size() > 6)", false),
        ("claims.groups.exists_one(group, group == \"admins\")", true),
        ("size(claims.groups.filter(group, group != 'readers')) == 1", true),
        ("claims.groups.map(group, group + '!') == ['admins!', 'readers!']", true),
        ("has(claims.missing) ? claims.missing == 1 : true", true),
        ("has(claims.missing) && claims.missing.deeper", false),
        ("type(claims.level) == double && type(claims.sub) == string", true),
        ("string(claims.email_verified) == \"true\"", true),
        ("!(claims.level > 2) || claims.sub == \"ann\" // why not", true),
        ("claims.big == 9007199254740993", true),
        ("claims.big == 9007199254740992", false),
        ("claims.groups.exists(a, claims.realm_access.roles.exists(b, a == b))", false),
    ] {
        assert_eq!(evaluate(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_failed_evaluation_is_no_match_and_its_reason_has_no_value_of_a_claim() {
    for (text, expected) in [
        (
            "claims.missing == 1",
            "a claim, or a part of one, that it reads is missing: test for it with has()",
        ),
        (
            "claims[claims.email]",
            "a claim, or a part of one, that it reads is missing: test for it with has()",
        ),
        (
            "claims.groups[9] == ''",
            "a claim, or a part of one, that it reads is missing: test for it with has()",
        ),
        ("claims.sub", "it is a text, and neither true nor false"),
        ("claims.groups", "it is a list, and neither true nor false"),
        ("claims.realm_access", "it is a map, and neither true nor false"),
        ("claims.level", "it is a number, and neither true nor false"),
        ("claims.none", "it is null, and neither true nor false"),
        (
            "claims.sub > 3",
            "a claim has another type than it expects: found no matching overload for '_>_' applied to '(string, int)'",
        ),
        ("claims.email - 1 == 1", "a claim has another type than it expects: no operation is for both"),
        ("claims.email.all(c, true)", "a claim has another type than it expects: no operation is for both"),
        ("int(claims.email) == 1", "it cannot be computed for these claims"),
        ("1 / 0 == 1", "it cannot be computed for these claims"),
        ("9223372036854775807 + 1 == 1", "it cannot be computed for these claims"),
        ("-(-9223372036854775808) == 1", "it cannot be computed for these claims"),
        ("-9223372036854775808 % -1 == 0", "it cannot be computed for these claims"),
        ("\"x\".matches(claims.sub + '(')", "it cannot be computed for these claims"),
    ] {
        assert_eq!(evaluate(text).map_err(|reason| reason.to_string()), Err(expected.into()), "{text}");
    }
}

#[test]
fn an_invalid_expression_is_rejected_with_its_position() {
    for (text, expected) in [
        ("", "line 1, column 1, after ``: mismatched input '<EOF>' expecting expression"),
        (
            "claims.sub == ",
            "line 1, column 15, after `claims.sub ==`: mismatched input '<EOF>' expecting expression",
        ),
        ("claims.sub = 'ann'", "line 1, column 12, at `= 'ann'`: mismatched input '=' expecting <EOF>"),
        ("true &&\n  (claims.a", "line 2, column 12, after `true && (claims.a`: expected ')'"),
        ("claims.é == 1", "line 1, column 8, at `é == 1`: unexpected character"),
        ("'é' == claims.'x'", "line 1, column 15, at `'x'`: expected identifier after '.'"),
        ("claims.sub == 'ann", "line 1, column 15, at `'ann`: unterminated string literal"),
        ("claims.?sub == 'ann'", "line 1, column 7, at `.?sub == 'ann'`: unsupported syntax '.?'"),
    ] {
        assert_eq!(compile_error(text), expected, "{text}");
    }
}

#[test]
fn an_expression_that_never_matches_is_rejected() {
    for (text, expected) in [
        ("claim.sub == 'ann'", "\"claim\" is not known: the only name is claims"),
        ("claims.groups.exists(g, h == 'x')", "\"h\" is not known: the only name is claims"),
        ("[1].exists(g, true) && g == 1", "\"g\" is not known: the only name is claims"),
        ("lower(claims.sub) == 'ann'", "there is no function \"lower\": there are bool, dyn, matches, "),
        ("claims.sub.lower() == 'ann'", "there is no function \"lower\": values have contains, endsWith, "),
        ("timestamp(claims.exp) == 1", "there is no function \"timestamp\": "),
        ("claims.sub.contains('a', 'b')", "contains takes 1 arguments, and not 2"),
        ("claims.sub.matches('(')", "\"(\" is no regular expression"),
        ("Claims{sub: 1} == 1", "there is no type \"Claims\": claims are lists and maps"),
        ("claims", "it can be neither true nor false: compare it with something"),
        ("'admins'", "it can be neither true nor false: "),
        ("size(claims.groups)", "it can be neither true nor false: "),
        ("claims.groups.filter(g, g == 'x')", "it can be neither true nor false: "),
        ("claims.a ? 1 : 'x'", "it can be neither true nor false: "),
        (
            "[1].all(a, [1].all(b, [1].all(c, true)))",
            "it has more than 2 loops within each other: write it flatter",
        ),
    ] {
        assert!(compile_error(text).starts_with(expected), "{text}: {}", compile_error(text));
    }
}

#[test]
fn a_hostile_text_is_rejected_without_a_crash() {
    // On the stack of a worker, or a smaller one.
    let hostile = || {
        for unit in [
            "(",
            "[",
            "{",
            "!",
            "-",
            "a.",
            "a?a:",
            "1+",
            "a[",
            "{a:",
            "f(",
            "a.f(",
            "[1].map(x,",
            "x{a:",
            "`",
        ] {
            for count in [10, 60, 100, 1_000, 4_096 / unit.len()] {
                let open = unit.repeat(count);
                Matcher::compile(&open).unwrap_err();
                for rest in ["true", "true)", "1])}", "'"] {
                    Matcher::compile(&format!("{open}{rest}")).ok();
                }
            }
        }
        for text in [
            format!("{}true{}", "(".repeat(2_000), ")".repeat(2_000)),
            format!("{}{} == []", "[".repeat(2_000), "]".repeat(2_000)),
            format!("claims{}.f()", ".f()".repeat(1_000)),
            format!("claims{} == 1", ".a".repeat(2_000)),
            format!("{}true", "true?true:".repeat(400)),
            format!("{}true", "!".repeat(4_092)),
        ] {
            let matcher = Matcher::compile(&text);
            if let Ok(matcher) = matcher {
                matcher.matches(claims().as_object().unwrap());
            }
        }
        assert_eq!(compile_error(&" ".repeat(4_097)), "it is 4097 bytes long: write at most 4096");
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(hostile).unwrap().join().unwrap();
}

#[test]
fn long_conditions_are_fine() {
    let any = vec!["claims.sub == 'x'"; 190].join(" || ");
    assert_eq!(evaluate(&any), Ok(false));
    let sum = vec!["1"; 200].join("+");
    assert_eq!(evaluate(&format!("{sum} == 200")), Ok(true));
    let expected = "it nests deeper than 256 operators: write it shorter";
    assert_eq!(compile_error(&format!("{} == 1", vec!["1"; 300].join("+"))), expected);
    assert_eq!(compile_error(&format!("claims{} == 1", ".a".repeat(300))), expected);
    let brackets = format!("{}claims.a{}", "[0 < ".repeat(70), "]".repeat(70));
    assert_eq!(compile_error(&brackets), "it nests deeper than 64 levels: write it flatter");
}

fn token() -> impl Strategy<Value = String> {
    let known = vec![
        "claims",
        ".",
        "sub",
        "groups",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "'''",
        "r'",
        "b'",
        "\\",
        "\\x",
        "\\u1",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        ">=",
        " in ",
        "?",
        ":",
        ",",
        "0",
        "0x",
        "1u",
        "1.5",
        "1e",
        "9223372036854775808",
        "true",
        "null",
        "has(",
        "size(",
        ".all(x,",
        ".map(x,",
        ".exists(x,",
        ".filter(x,",
        ".matches(",
        "//",
        "\n",
        "\r",
        " ",
        "é",
        "🐝",
        "`a`",
        "x",
        "type(",
        "if ",
        "@in",
        "_",
        "int(",
        "double(",
        "bytes(",
    ];
    prop_oneof![9 => select(known).prop_map(String::from), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_text_panics(tokens in vec(token(), 0..24)) {
        if let Ok(matcher) = Matcher::compile(&tokens.concat()) {
            matcher.matches(claims().as_object().unwrap());
        }
    }

    #[test]
    fn no_well_formed_expression_panics(left in operand(), operator in select(OPERATORS.to_vec()), right in operand()) {
        if let Ok(matcher) = Matcher::compile(&format!("({left}) {operator} ({right}) == true")) {
            matcher.matches(claims().as_object().unwrap());
        }
    }
}

const OPERATORS: [&str; 14] = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"];

fn operand() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "claims",
        "claims.sub",
        "claims.groups",
        "claims.level",
        "claims.none",
        "claims.missing",
        "0",
        "-1",
        "1u",
        "-9223372036854775808",
        "18446744073709551615u",
        "1e308",
        "'é🐝'",
        "b'\\xff'",
        "[]",
        "{}",
        "{1: 2}",
        "int",
        "null",
    ]);
    leaf.prop_map(String::from).prop_recursive(4, 16, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair, select(OPERATORS.to_vec())).prop_map(|((a, b), operator)| format!("({a} {operator} {b})")),
            (
                inner.clone(),
                select(vec!["size", "int", "uint", "double", "string", "bytes", "type", "bool", "dyn"])
            )
                .prop_map(|(a, function)| format!("{function}({a})")),
            (inner.clone(), inner.clone(), select(vec!["contains", "matches", "startsWith", "endsWith"]))
                .prop_map(|(a, b, method)| format!("({a}).{method}({b})")),
            (inner.clone(), inner.clone(), select(vec!["all", "exists", "exists_one", "map", "filter"]))
                .prop_map(|(a, b, each)| format!("({a}).{each}(x, {b} == x)")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a})[{b}]")),
        ]
    })
}
