//! Links to dashboards, logs and traces, which the installation configures.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::Key;

/// A link. In its address, `{kind}`, `{namespace}` and `{name}` are those of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    title: String,
    url: String,
}

/// The links of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(Vec<Link>);

impl Links {
    /// The links in a list of `{title, url}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let links: Vec<Link> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match links
            .iter()
            .find(|link| !["http://", "https://"].iter().any(|scheme| link.url.starts_with(scheme)))
        {
            Some(link) => Err(format!("the url of {:?} must begin with http:// or https://", link.title)),
            None => Ok(Self(links)),
        }
    }

    /// Those that are about everything.
    pub(crate) fn of_all(&self) -> Vec<Link> {
        self.0.iter().filter(|link| !link.is_about_an_object()).cloned().collect()
    }

    /// Those of an object.
    pub(crate) fn of_object(&self, key: &Key) -> Vec<Link> {
        let links = self.0.iter().filter(|link| link.is_about_an_object());
        links.map(|link| Link { title: link.title.clone(), url: link.filled(key) }).collect()
    }
}

impl Link {
    fn is_about_an_object(&self) -> bool {
        ["{kind}", "{namespace}", "{name}"].iter().any(|place| self.url.contains(place))
    }

    fn filled(&self, key: &Key) -> String {
        let places = [("{kind}", &key.kind), ("{namespace}", &key.namespace), ("{name}", &key.name)];
        places.iter().fold(self.url.clone(), |url, (place, value)| {
            url.replace(place, &utf8_percent_encode(value, NON_ALPHANUMERIC).to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_of_an_object_has_its_name_and_the_others_are_for_all() {
        let links = Links::parse(
            r#"[{"title": "Grafana", "url": "https://g"}, {"title": "Logs", "url": "https://l/{kind}?q={namespace}/{name}"}]"#,
        )
        .unwrap();
        let urls = |links: Vec<Link>| links.into_iter().map(|link| link.url).collect::<Vec<_>>();
        assert_eq!(urls(links.of_all()), ["https://g"]);
        // A name is a value within the address, whatever it is.
        let hostile = Key::new("MCPServer", "n", "a&x=/../{kind}");
        assert_eq!(
            urls(links.of_object(&hostile)),
            ["https://l/MCPServer?q=n/a%26x%3D%2F%2E%2E%2F%7Bkind%7D"]
        );
    }

    #[test]
    fn a_link_leads_to_a_web_page() {
        for url in ["javascript:alert(1)", "data:text/html,x", "//host", ""] {
            let text = format!(r#"[{{"title": "x", "url": "{url}"}}]"#);
            assert!(Links::parse(&text).is_err(), "{url}");
        }
        assert!(Links::parse("{}").is_err());
    }
}
