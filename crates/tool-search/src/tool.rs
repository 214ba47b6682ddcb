//! A tool, as far as a search needs it.

use std::borrow::Cow;

/// A tool.
#[derive(Clone, Debug, Default)]
pub struct Tool<'a> {
    /// The name by which it is called.
    pub name: Cow<'a, str>,
    /// The name that people see.
    pub title: Cow<'a, str>,
    /// What it does.
    pub description: Cow<'a, str>,
    /// Its parameters: their names and descriptions.
    pub parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The server that has it.
    pub server: Cow<'a, str>,
}

impl Tool<'_> {
    /// Its name without that of the server, where it starts with that.
    pub(crate) fn own_name(&self) -> &str {
        let own = self.name.strip_prefix(&*self.server).filter(|_| !self.server.is_empty());
        let own = own.map(|own| own.trim_start_matches(|character: char| !character.is_alphanumeric()));
        own.filter(|own| !own.is_empty()).unwrap_or(&self.name)
    }

    /// The text that an embedding service makes a vector of.
    pub fn text(&self) -> String {
        format!("name: {} description: {}", self.name, self.description)
    }
}
