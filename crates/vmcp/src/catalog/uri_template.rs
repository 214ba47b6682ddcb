//! URI templates (RFC 6570), as far as they decide whether a URI is one of theirs.

use crate::limits;

/// A URI template.
pub(super) struct UriTemplate<'a>(&'a str);

impl<'a> UriTemplate<'a> {
    pub(super) fn new(template: &'a str) -> Self {
        Self(template)
    }

    /// Whether the template can expand to this URI. All matches are followed side by side, so that no template takes
    /// longer than its length times that of the URI. One that is very long or has very many expressions expands to nothing.
    pub(super) fn matches(&self, uri: &str) -> bool {
        let prefix = self.0.split_once('{').map_or(self.0, |(prefix, _)| prefix);
        let is_comparable =
            self.0.len() <= limits::URI && self.0.matches('{').count() <= limits::TEMPLATE_EXPRESSIONS;
        uri.starts_with(prefix) && is_comparable && self.expands_to(uri)
    }

    fn expands_to(&self, uri: &str) -> bool {
        let mut reached = vec![false; uri.len() + 1];
        reached[0] = true;
        let mut rest = self.0;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((expression, after)) = after.split_once('}') else { return false };
            reached = after_literal(&reached, literal, uri);
            reached = Expression::of(expression).after(&reached, uri);
            rest = after;
        }
        after_literal(&reached, rest, uri)[uri.len()]
    }
}

/// The places that are reached from these by a literal.
fn after_literal(reached: &[bool], literal: &str, uri: &str) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for (place, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
        if uri[place..].starts_with(literal) {
            next[place + literal.len()] = true;
        }
    }
    next
}

/// What an expression can expand to.
struct Expression {
    /// What it starts with.
    first: Option<char>,
    /// What it never contains.
    excluded: &'static [char],
}

impl Expression {
    fn of(expression: &str) -> Self {
        let (first, excluded): (_, &[char]) = match expression.chars().next() {
            Some('+') => (None, &[]),
            Some('#') => (Some('#'), &[]),
            Some('.') => (Some('.'), &['/', '?', '#']),
            Some('/') => (Some('/'), &['?', '#']),
            Some(';') => (Some(';'), &['/', '?', '#']),
            Some('?') => (Some('?'), &['#']),
            Some('&') => (Some('&'), &['#']),
            _ => (None, &['/', '?', '#']),
        };
        Self { first, excluded }
    }

    /// The places that are reached from these by this expression.
    fn after(&self, reached: &[bool], uri: &str) -> Vec<bool> {
        // Variables that are not defined leave nothing behind, but those without an operator are always defined.
        let mut next = if self.first.is_some() { reached.to_vec() } else { vec![false; reached.len()] };
        let mut is_inside = false;
        for (place, character) in uri.char_indices() {
            let end = place + character.len_utf8();
            let starts = reached[place] && self.first.is_none_or(|first| first == character);
            let continues = is_inside && !self.excluded.contains(&character);
            let has_content = self.first.is_some() || !self.excluded.contains(&character);
            is_inside = continues || (starts && has_content);
            next[end] |= is_inside;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_the_templates_that_can_expand_to_it() {
        for (template, uri, fits) in [
            ("kit://a/{id}", "kit://a/42", true),
            ("kit://a/{id}", "kit://a/", false),
            ("kit://a/{id}", "kit://a/1/2", false),
            ("kit://b/{x}/{y}", "kit://b/1/2", true),
            ("kit://b/{x}/{y}", "kit://b/1", false),
            ("file:///{+path}", "file:///a/b.txt", true),
            ("db://{table}{?limit,offset}", "db://t?limit=1", true),
            ("db://{table}{?limit,offset}", "db://t", true),
            ("x://{a}.{b}", "x://a.b.c", true),
            ("x://{a", "x://1", false),
            ("x://y", "x://y", true),
        ] {
            assert_eq!(UriTemplate::new(template).matches(uri), fits, "{template} {uri}");
        }
    }

    #[test]
    fn a_template_that_takes_long_to_compare_expands_to_nothing() {
        let template = |count: usize| format!("x://{}", "{a}".repeat(count));
        let matches = |template: &str| UriTemplate::new(template).matches("x://aaaaaaaaaaaaaaaaaaaa");
        assert!(matches(&template(limits::TEMPLATE_EXPRESSIONS)));
        assert!(!matches(&template(limits::TEMPLATE_EXPRESSIONS + 1)));
        assert!(!matches(&format!("x://{{{}}}", "a".repeat(limits::URI))));
    }
}
