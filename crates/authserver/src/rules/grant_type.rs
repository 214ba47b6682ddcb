//! Grant types.

/// How a client gets a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantType {
    /// RFC 6749, section 4.1.3.
    Code,
    /// RFC 6749, section 6.
    Refresh,
    /// RFC 8693, section 2.1.
    Exchange,
    /// RFC 7523, section 2.1.
    JwtBearer,
}

impl GrantType {
    /// Its name in requests and metadata.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Code => "authorization_code",
            Self::Refresh => "refresh_token",
            Self::Exchange => "urn:ietf:params:oauth:grant-type:token-exchange",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
        }
    }

    /// The grant type with that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Code, Self::Refresh, Self::Exchange, Self::JwtBearer]
            .into_iter()
            .find(|one| one.name() == name)
    }
}
