//! The parameters of a request.

/// The parameters of a query or a form, decoded.
pub(crate) struct Parameters(Vec<(String, String)>);

/// The parameters that a request may have several times (RFC 8707, section 2, and RFC 8693, section 2.1).
const REPEATABLE: [&str; 2] = ["resource", "audience"];

impl Parameters {
    /// The parameters of a query or a form.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(
            form_urlencoded::parse(text)
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    /// The value of a parameter. One without a value is treated as omitted (RFC 6749, section 3.1).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
            .filter(|value| !value.is_empty())
    }

    /// All values of a parameter, also empty ones.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// A parameter that must not be there more than once, and is (RFC 6749, sections 3.1 and 3.2).
    pub(crate) fn duplicate(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
            .find(|name| !REPEATABLE.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_may_be_there_once() {
        let duplicate = |text: &str| Parameters::parse(text.as_bytes()).duplicate().map(str::to_owned);
        assert_eq!(duplicate("a=1&b=2&resource=x&resource=y&audience=x&audience=y"), None);
        assert_eq!(duplicate("a=1&b=2&%61=1").as_deref(), Some("a"));
        assert_eq!(Parameters::parse(b"scope=").get("scope"), None);
    }
}
