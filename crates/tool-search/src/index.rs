//! The index of tools.

use std::collections::HashMap;

use crate::{
    Semantic, Tool,
    lexical::Lexical,
    words::{is_camel_case, normalized_name},
};

/// What is searched for.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// A description.
    pub text: &'a str,
    /// Single words.
    pub keywords: Vec<&'a str>,
}

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its place among the tools that the index was made of.
    pub tool: usize,
    /// How well it fits, compared with others of the same search.
    pub score: f32,
}

/// An index of tools.
#[derive(Debug, Default)]
pub struct Index {
    lexical: Lexical,
    /// Tools by their names, whatever separates the words of these.
    names: HashMap<Box<str>, Vec<(Named, u32)>>,
}

/// How a query names a tool. What comes later is more exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Not,
    /// Without the prefix of its server.
    Shortly,
    Fully,
}

impl Query<'_> {
    /// The text with the keywords.
    pub fn whole(&self) -> String {
        let mut whole = self.text.to_owned();
        for keyword in &self.keywords {
            whole.push(' ');
            whole.push_str(keyword);
        }
        whole
    }

    /// What may be the name of a tool: all of the text, a keyword, or an identifier in the text.
    fn names(&self) -> impl Iterator<Item = String> {
        let is_identifier = |word: &&str| word.contains(['_', '-', '.', '/', ':']) || is_camel_case(word);
        let identifiers = self.text.split_whitespace().filter(is_identifier);
        std::iter::once(self.text)
            .chain(self.keywords.iter().copied())
            .chain(identifiers)
            .map(normalized_name)
            .filter(|name| !name.is_empty())
    }
}

impl Index {
    /// The index of these tools.
    pub fn new(tools: &[Tool<'_>]) -> Self {
        let mut names: HashMap<Box<str>, Vec<(Named, u32)>> = HashMap::new();
        for (place, tool) in (0..).zip(tools) {
            let (full, short) = (normalized_name(&tool.name), normalized_name(tool.own_name()));
            if short != full {
                names.entry(short.into()).or_default().push((Named::Shortly, place));
            }
            names.entry(full.into()).or_default().push((Named::Fully, place));
        }
        Self { lexical: Lexical::new(tools), names }
    }

    /// The tools that fit, best first, at most so many. Those whose names the query has come before all others.
    pub fn search(&self, query: &Query<'_>, semantic: Option<&Semantic<'_>>, limit: usize) -> Vec<Hit> {
        let mut scores = self.lexical.scores(query);
        if let Some(semantic) = semantic {
            semantic.join(&mut scores);
        }
        let mut named: HashMap<u32, Named> = HashMap::new();
        for (how, place) in query.names().filter_map(|name| self.names.get(&*name)).flatten() {
            let known = named.entry(*place).or_insert(*how);
            *known = (*known).max(*how);
        }
        let how = |place: &u32| named.get(place).copied().unwrap_or(Named::Not);
        let hits = (0..).zip(scores).map(|(place, score)| (how(&place), place, score));
        let mut hits: Vec<_> = hits.filter(|(named, _, score)| *named > Named::Not || *score > 0.0).collect();
        hits.sort_by(|one, other| {
            other.0.cmp(&one.0).then(other.2.total_cmp(&one.2)).then(one.1.cmp(&other.1))
        });
        hits.truncate(limit);
        hits.into_iter().map(|(_, place, score)| Hit { tool: place as usize, score }).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tool<'a>(name: &'a str, description: &'a str) -> Tool<'a> {
        Tool { name: name.into(), description: description.into(), ..Tool::default() }
    }

    fn found(tools: &[Tool<'_>], text: &str, keywords: &[&str]) -> Vec<String> {
        let query = Query { text, keywords: keywords.to_vec() };
        let hits = Index::new(tools).search(&query, None, 8);
        hits.into_iter().map(|hit| tools[hit.tool].name.to_string()).collect()
    }

    fn office() -> Vec<Tool<'static>> {
        vec![
            tool("send_mail", "Send an electronic letter to a person"),
            tool("read_calendar", "Read appointments of a day"),
            tool("makeCoffee", "Brew coffee in the kitchen machine"),
            Tool {
                server: "weather-station".into(),
                parameters: vec![("town".into(), "Where the temperature is measured".into())],
                ..tool("forecast", "")
            },
        ]
    }

    #[test]
    fn a_tool_is_found_by_any_of_its_fields() {
        for (text, expected) in [
            ("brew some coffee", "makeCoffee"),
            ("brewing machines", "makeCoffee"),
            ("appointment", "read_calendar"),
            ("calendars", "read_calendar"),
            ("weather", "forecast"),
            ("temperatures", "forecast"),
            ("coffe", "makeCoffee"),
        ] {
            assert_eq!(found(&office(), text, &[]), [expected], "{text}");
        }
        assert_eq!(found(&office(), "anything", &["calendar"]), ["read_calendar"]);
        assert_eq!(found(&office(), "zebra", &[]), [""; 0]);
        assert_eq!(found(&[], "zebra", &[]), [""; 0]);
    }

    #[test]
    fn a_name_in_the_query_comes_before_everything_that_fits_better() {
        let mut tools = office();
        tools.push(tool("mail", "Send mail, mail, mail: send a mail to send"));
        tools.push(Tool { server: "post".into(), ..tool("post_sendMail", "") });
        let first = |text: &str, keywords: &[&str]| found(&tools, text, keywords)[..2].to_vec();
        assert_eq!(first("send_mail", &[]), ["send_mail", "post_sendMail"]);
        assert_eq!(first("call send-mail for me, and send mail", &[]), ["send_mail", "post_sendMail"]);
        assert_eq!(first("mail to send mail", &["post.send_mail"])[0], "post_sendMail");
        assert_eq!(first("mail", &[])[0], "mail");
        // A name within a sentence.
        assert_eq!(first("please makeCoffee, and send mail", &[])[0], "makeCoffee");
        assert_eq!(first("send mail, mail, mail with sendMail", &[]), ["send_mail", "post_sendMail"]);
    }

    #[test]
    fn a_full_name_comes_before_names_without_the_prefix_of_their_server() {
        let of = |server: &'static str, name: &'static str, description: &'static str| Tool {
            server: server.into(),
            ..tool(name, description)
        };
        let often = "search search search search";
        let tools =
            [of("web", "web_search", often), of("files", "search", "Find"), of("mail", "mail_search", often)];
        assert_eq!(found(&tools, "search", &[])[0], "search");
        assert_eq!(found(&tools, "something else", &["search"])[0], "search");
        assert_eq!(found(&tools, "mail_search", &["search"])[..2], ["mail_search", "search"]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_indexed_and_searched(texts in prop::collection::vec("\\PC{0,40}", 0..8), text in "\\PC{0,80}") {
            let tools: Vec<Tool<'_>> = texts.iter().map(|text| tool(text, text)).collect();
            let index = Index::new(&tools);
            let hits = index.search(&Query { text: &text, keywords: vec![&text] }, None, 5);
            prop_assert!(hits.len() <= 5);
            prop_assert!(hits.iter().all(|hit| hit.score.is_finite() && hit.tool < tools.len()));
            for (place, tool) in tools.iter().enumerate() {
                if tool.name.chars().any(char::is_alphanumeric) {
                    let named = index.search(&Query { text: &tool.name, keywords: vec![] }, None, 8);
                    prop_assert!(named.iter().any(|hit| hit.tool == place));
                }
            }
        }
    }
}
