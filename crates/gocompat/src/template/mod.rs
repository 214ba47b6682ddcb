//! The subset of Go's `text/template` that workflows use: the grammar, the data that a template refers to, and its text
//! with some data.
//!
//! `define`, `block` and `template` are not supported: templates cannot include others. Three things differ from Go:
//! lists and objects are written as JSON, whole numbers never have an exponent, and whole numbers and fractions can be compared.
//! Needed permanently: fields of the API are such templates.

mod compare;
mod error;
mod eval;
mod format;
mod functions;
mod lex;
mod parse;
mod references;
#[cfg(test)]
mod rendered;
mod scope;
mod tree;
mod value;

use serde_json::Value;

/// A path from the root of the data, such as `steps`, `search`, `output`.
pub type Path = Vec<String>;

pub use error::{RenderError, TemplateError};

/// How large the text may become.
const MAX_OUTPUT: usize = 10 << 20;
/// How deep parentheses and blocks may be nested.
const MAX_DEPTH: usize = 50;

/// A template that was parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<tree::Node>,
    references: Vec<Path>,
}

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let nodes = parse::nodes(&lex::pieces(text)?)?;
        let references = references::references(&nodes)?;
        Ok(Self { nodes, references })
    }

    /// The paths of the data that it refers to, in order of appearance.
    pub fn references(&self) -> &[Path] {
        &self.references
    }

    /// Its text with this data. How large that becomes, and how long it takes, is bounded.
    pub fn render(&self, data: &Value) -> Result<String, RenderError> {
        eval::render(&self.nodes, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<String> {
        Template::parse(text).unwrap().references().iter().map(|path| path.join("/")).collect()
    }

    #[test]
    fn every_reference_to_data_is_listed() {
        for (text, expected) in [
            ("no template", vec![]),
            ("{{.params.a}} and {{ .steps.b.output.c }}", vec!["params/a", "steps/b/output/c"]),
            ("{{- $.params.a -}}", vec!["params/a"]),
            ("{{json .steps.b.output | quote}}", vec!["steps/b/output"]),
            ("{{/* {{.params.a}} */}}", vec![]),
            (
                "{{if and (eq .params.a \"}}\") (gt .params.b 0.5)}}x{{else if .params.c}}y{{end}}",
                vec!["params/a", "params/b", "params/c"],
            ),
            (
                "{{with .steps.a}}{{.output.b}}{{$.params.c}}{{else}}{{.params.d}}{{end}}",
                vec!["steps/a", "steps/a/output/b", "params/c", "params/d"],
            ),
            (
                "{{range $i, $e := .steps.a.output.list}}{{.name}}{{$e.x}}{{$i}}{{break}}{{end}}",
                vec!["steps/a/output/list"],
            ),
            (
                "{{$x := .steps.a.output}}{{$x.b}}{{$x = 5}}{{$x.c}}",
                vec!["steps/a/output", "steps/a/output/b"],
            ),
            ("{{index .steps \"my-step\" \"output\" \"n\"}}", vec!["steps", "steps/my-step/output/n"]),
            ("{{(fromJson .steps.a.output.text).field}}", vec!["steps/a/output/text"]),
            ("{{(.steps.a).output.b}}", vec!["steps/a", "steps/a/output/b"]),
            ("{{printf \"%v %q\" .params.a `raw}}`}}", vec!["params/a"]),
            ("{{len .params.a | eq 3}}{{true}}{{'x'}}{{-1.5e3}}{{0x1F}}", vec!["params/a"]),
            ("{{.}}{{json $}}", vec!["", ""]),
        ] {
            assert_eq!(joined(text), expected, "{text}");
        }
    }

    #[test]
    fn an_error_quotes_the_action() {
        for (text, message) in [
            ("a {{.params.a", r#"{{ is not closed: "{{.params.a""#),
            ("{{/* note }}", r#"a comment is not closed: "{{/* note }}""#),
            ("{{}}", r#""{{}}" is empty"#),
            ("{{.steps.my-step}}", r#"unexpected '-' in "{{.steps.my-step}}": write index .steps "my-step""#),
            ("{{\"open}}", r#"a string is not closed: "{{\"open}}""#),
            ("{{@}}", r#"unexpected '@' in "{{@}}""#),
            (
                "{{lower .params.a}}",
                r#"there is no function lower in "{{lower .params.a}}": use json, quote, fromJson or a function of Go's templates"#,
            ),
            ("{{$x}}", r#"there is no variable $x in "{{$x}}""#),
            ("{{if .params.a}}x", "{{if}} has no {{end}}"),
            ("x{{end}}", "{{end}} without a block"),
            ("{{else}}", "{{else}} without {{if}}"),
            ("{{if .a}}{{else}}{{else}}{{end}}", "a block has two {{else}}"),
            ("{{if}}x{{end}}", r#""{{if}}" is incomplete"#),
            ("{{(.a}}", r#"( is not closed in "{{(.a}}""#),
            ("{{.a)}}", r#"unexpected ) in "{{.a)}}""#),
            ("{{.a |}}", r#""{{.a |}}" is incomplete"#),
            ("{{.a | 5}}", r#"5 cannot be called in "{{.a | 5}}""#),
            ("{{break}}", "{{break}} outside of {{range}}"),
            ("{{define \"x\"}}y{{end}}", "define is not supported: templates cannot include others"),
            (
                "{{.a b}}",
                r#"there is no function b in "{{.a b}}": use json, quote, fromJson or a function of Go's templates"#,
            ),
            ("{{1x}}", r#"1x is not a number in "{{1x}}""#),
            ("{{nil}}", r#"nil cannot be called in "{{nil}}""#),
            ("{{$x := }}", r#""{{$x := }}" is incomplete"#),
        ] {
            assert_eq!(Template::parse(text).unwrap_err().to_string(), message, "{text}");
        }
        let deep = format!("{{{{{}.a{}}}}}", "(".repeat(200), ")".repeat(200));
        assert_eq!(
            Template::parse(&deep).unwrap_err().to_string(),
            "parentheses are nested deeper than 50 levels"
        );
        let deep = format!("{}{}", "{{if .a}}".repeat(200), "{{end}}".repeat(200));
        assert_eq!(
            Template::parse(&deep).unwrap_err().to_string(),
            "blocks are nested deeper than 50 levels"
        );
    }

    #[test]
    fn no_text_panics() {
        use proptest::prelude::*;
        proptest!(|(text in "(\\{\\{|\\}\\}|[a-z .$|()\"`'/*:=,0-9-]|if |end|range |with |else)*")| {
            if let Ok(template) = Template::parse(&text) {
                template.render(&serde_json::json!({"a": [1, {"b": "x"}]})).ok();
            }
        });
    }
}
