//! Templates with data, and the text that Go's templates have for them.

use serde_json::json;

use super::Template;

fn rendered(text: &str) -> Result<String, String> {
    let data = json!({
        "params": {
            "s": "x", "n": 3, "f": 2.5, "big": 1234567, "flag": true, "off": false, "none": null,
            "l": ["p", "q"], "o": {"b": 1, "a": [true]}, "j": "{\"k\":\"v\"}", "empty": [], "zero": 0,
            "quoted": "a\"b\n", "tag": "<b>'&", "small": 0.00001, "large": 1e21, "whole": 7.0,
        },
        "steps": {"my-step": {"output": {"n": 1}}},
    });
    let template = Template::parse(text).map_err(|error| error.to_string())?;
    template.render(&data).map_err(|error| error.to_string())
}

#[test]
fn a_template_has_the_text_that_go_has_for_it() {
    for (text, expected) in [
        ("plain", "plain"),
        ("{{.params.s}}", "x"),
        ("{{ .params.s }}-{{.params.n}}", "x-3"),
        ("{{.params.nothing}}", "<no value>"),
        ("{{.params.nothing.deeper}}", "<no value>"),
        ("{{.params.none}}", "<no value>"),
        ("{{.params.f}} {{.params.small}} {{.params.large}} {{.params.whole}}", "2.5 1e-05 1e+21 7"),
        ("{{.params.flag}}", "true"),
        // What is only space is trimmed.
        ("a  {{- .params.s -}}  b", "axb"),
        ("a {{/* nothing */}} b", "a  b"),
        ("a {{- /* nothing */ -}} b", "ab"),
        // Functions.
        ("{{json .params.o}}", r#"{"a":[true],"b":1}"#),
        ("{{quote .params.quoted}}", r#""a\"b\n""#),
        ("{{(fromJson .params.j).k}}", "v"),
        ("{{len .params.l}}{{len .params.s}}{{len .params.o}}", "212"),
        ("{{index .params.l 1}}", "q"),
        ("{{index .steps \"my-step\" \"output\" \"n\"}}", "1"),
        ("{{index .params \"nothing\"}}", "<no value>"),
        ("{{slice .params.l 1}}", "[\"q\"]"),
        ("{{slice \"abc\" 1 2}}", "b"),
        ("{{print 1 2 \"a\" 3 true}}", "1 2a3 true"),
        ("{{println .params.s 1}}", "x 1\n"),
        ("{{html .params.tag}}", "&lt;b&gt;&#39;&amp;"),
        ("{{js .params.tag}}", "\\u003Cb\\u003E\\'\\u0026"),
        ("{{urlquery \"a b&c\"}}", "a+b%26c"),
        (
            "{{printf \"%03d|%5s|%-5s|%q|%v|%t|%.2f|%x|%c|%%\" 7 \"a\" \"b\" \"c\" .params.f true 1.5 255 65}}",
            "007|    a|b    |\"c\"|2.5|true|1.50|ff|A|%",
        ),
        (
            "{{printf \"%+d %05d %6.2f %e %g %s\" 5 -42 3.14159 1500.0 0.5 \"z\"}}",
            "+5 -0042   3.14 1.500000e+03 0.5 z",
        ),
        ("{{printf \"%d\" \"a\"}}", "%!d(string=a)"),
        ("{{printf \"%d\"}}", "%!d(MISSING)"),
        ("{{printf \"x\" 1}}", "x%!(EXTRA int=1)"),
        ("{{printf \"%.2s\" \"abc\"}}", "ab"),
        // Truth and comparison.
        ("{{if .params.flag}}yes{{else}}no{{end}}", "yes"),
        ("{{if .params.zero}}yes{{else if .params.s}}other{{end}}", "other"),
        ("{{if .params.empty}}yes{{else}}no{{end}}", "no"),
        ("{{if eq .params.s \"x\"}}eq{{end}}", "eq"),
        ("{{eq .params.s \"a\" \"x\"}}", "true"),
        ("{{ne .params.s \"x\"}}{{lt 1 2}}{{le 2 2}}{{gt \"b\" \"a\"}}{{ge 1 2}}", "falsetruetruetruefalse"),
        ("{{eq .params.nothing \"x\"}}", "false"),
        ("{{and .params.flag .params.s}}{{and .params.zero .params.s}}", "x0"),
        ("{{or .params.zero .params.s}}{{or .params.zero .params.off}}", "xfalse"),
        ("{{or .params.s (index .params.l 9)}}", "x"),
        ("{{not .params.flag}}", "false"),
        ("{{eq nil .params.none}}", "true"),
        // Pipelines and variables.
        ("{{.params.s | printf \"%s-%s\" \"a\"}}", "a-x"),
        ("{{json .params.l | quote}}", "\"[\\\"p\\\",\\\"q\\\"]\""),
        ("{{$x := .params.o}}{{$x.b}}{{$x = 5}}{{$x}}", "15"),
        ("{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "2"),
        ("{{$x := 1}}{{if true}}{{$x := 2}}{{end}}{{$x}}", "1"),
        ("{{with .params.o}}{{.b}}{{$.params.s}}{{end}}", "1x"),
        ("{{with .params.nothing}}a{{else with .params.s}}{{.}}{{else}}b{{end}}", "x"),
        // Loops.
        ("{{range $i, $e := .params.l}}{{$i}}{{$e}},{{end}}", "0p,1q,"),
        ("{{range .params.l}}{{.}}{{end}}", "pq"),
        ("{{range $key, $value := .params.o}}{{$key}}{{end}}", "ab"),
        ("{{range .params.empty}}a{{else}}none{{end}}", "none"),
        ("{{range $i, $e := .params.l}}{{if eq $i 1}}{{break}}{{end}}{{$e}}{{end}}", "p"),
        ("{{range $i, $e := .params.l}}{{if eq $i 0}}{{continue}}{{end}}{{$e}}{{end}}", "q"),
        ("{{range 3}}{{.}}{{end}}", "012"),
        // Literals.
        ("{{'x'}}{{-1.5e3}}{{0x1F}}{{true}}{{`a\\n`}}{{\"\\t\\u00e9\"}}", "120-150031truea\\n\té"),
        // What differs from Go, where these are 1.234567e+06, [p q], map[a:[true] b:1], and errors.
        ("{{.params.big}}", "1234567"),
        ("{{.params.l}}", r#"["p","q"]"#),
        ("{{.params.o}}", r#"{"a":[true],"b":1}"#),
        ("{{eq .params.n 3.0}}{{gt .params.f 2}}", "truetrue"),
    ] {
        assert_eq!(rendered(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn an_error_says_what_is_wrong_in_which_action() {
    for (text, message) in [
        ("{{.params.s.field}}", "a string has no field field in \"{{.params.s.field}}\""),
        ("{{index .params.l 9}}", "index: 9 is out of range in \"{{index .params.l 9}}\""),
        ("{{index .params.l -1}}", "index: -1 is out of range in \"{{index .params.l -1}}\""),
        ("{{len .params.n}}", "len: a number has no length in \"{{len .params.n}}\""),
        ("{{lt .params.s 1}}", "lt: a string and a number cannot be compared in \"{{lt .params.s 1}}\""),
        ("{{eq .params.s 1}}", "eq: a string and a number cannot be compared in \"{{eq .params.s 1}}\""),
        ("{{range .params.s}}{{end}}", "range over a string in \"{{range .params.s}}\""),
        ("{{.params.s 1}}", "only a function has arguments in \"{{.params.s 1}}\""),
        ("{{not}}", "not: 0 arguments do not fit in \"{{not}}\""),
        ("{{call .params.s}}", "call: there is no function among the data in \"{{call .params.s}}\""),
    ] {
        assert_eq!(rendered(text), Err(message.to_owned()), "{text}");
    }
    assert!(rendered("{{fromJson .params.s}}").unwrap_err().starts_with("fromJson: it is not JSON"));
    assert!(rendered("{{\"\\q\"}}").unwrap_err().starts_with("unknown escape \\q"));
}

#[test]
fn a_hostile_template_ends_within_its_bounds() {
    let steps = "it takes too many steps";
    let large = "too large";
    for (text, expected) in [
        ("{{range 9000000000000000000}}{{end}}".to_owned(), steps),
        ("{{range 1000}}{{range 1000}}{{range 1000}}{{end}}{{end}}{{end}}".to_owned(), steps),
        ("{{range 1000}}{{printf \"%1000000d\" 1}}{{end}}".to_owned(), large),
        ("{{$x := \"ab\"}}{{range 100}}{{$x = print $x $x}}{{end}}".to_owned(), large),
        ("{{$x := \"ab\"}}{{range 100}}{{$x = json $x}}{{end}}".to_owned(), large),
        (format!("{{{{$x := {:?}}}}}{{{{range 100000}}}}{{{{$x}}}}{{{{end}}}}", "a".repeat(10_000)), large),
    ] {
        let error = rendered(&text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
