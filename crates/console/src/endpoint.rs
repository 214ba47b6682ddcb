//! The endpoints of the page's data.

/// An endpoint under `/api/`. The router knows no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Who is signed in; sign in and out.
    Session,
    /// The begin of a login at a provider.
    Login,
    /// All objects.
    Objects,
    /// One object.
    Object,
    /// The stream of changes.
    Events,
    /// The MCP endpoint of an object.
    Mcp,
    /// The servers with an authorization server.
    Sessions,
    /// The sessions of users at the authorization server of an object.
    SessionsOf,
    /// The clients that have registered there.
    ClientsOf,
}

impl Endpoint {
    /// All of them, with their paths. One that ends with `/` is followed by `KIND/NAMESPACE/NAME`.
    pub const ALL: [(Self, &str); 9] = [
        (Self::Session, "session"),
        (Self::Login, "login"),
        (Self::Objects, "objects"),
        (Self::Object, "objects/"),
        (Self::Events, "events"),
        (Self::Mcp, "mcp/"),
        (Self::Sessions, "sessions"),
        (Self::SessionsOf, "sessions/"),
        (Self::ClientsOf, "clients/"),
    ];

    /// The endpoint at this path, and the rest of the path.
    pub(crate) fn of(path: &str) -> Option<(Self, &str)> {
        Self::ALL.iter().find_map(|(endpoint, own)| {
            let rest = path.strip_prefix(own)?;
            (rest.is_empty() || own.ends_with('/')).then_some((*endpoint, rest))
        })
    }
}
