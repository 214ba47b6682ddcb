//! Clients: registered ones, those with a document, and delegates.

mod authentication;
mod documents;
mod metadata;

use std::net::IpAddr;

use crate::{
    AuthServer,
    error::OAuthError,
    random::hash,
    rules::{GrantType, is_document_url, is_redirect_to},
    store::{Client, Method},
};
pub(crate) use documents::Documents;
use documents::Unavailable;
pub(crate) use metadata::{Metadata, MetadataError};

impl AuthServer {
    /// The client with this id, for a request of an address.
    pub(crate) async fn client(&self, id: &str, peer: IpAddr) -> Result<Option<Client>, OAuthError> {
        if let Some(delegate) = self.settings.delegates.iter().find(|delegate| delegate.id == id) {
            return Ok(Some(Client {
                id: delegate.id.clone(),
                name: String::new(),
                redirect_uris: Vec::new(),
                grant_types: vec![GrantType::Exchange.name().into()],
                response_types: Vec::new(),
                scopes: delegate.scopes.clone(),
                audience: delegate.audiences.clone(),
                public: false,
                dcr_issued: false,
                token_endpoint_auth_method: Method::ClientSecretBasic,
                secret_hash: hash(&delegate.secret),
                any_secret_method: true,
                keys: None,
            }));
        }
        match &self.documents {
            Some(documents) if is_document_url(id, self.settings.is_local()) => {
                let client = documents.client(id, peer, &self.settings, &self.clock).await;
                client.map_err(|Unavailable| OAuthError::unavailable())
            }
            _ => Ok(self.store.client(id).await?),
        }
    }

    /// A client with a document, whose keys may have changed.
    async fn renewed(&self, id: &str, peer: IpAddr) -> Result<Option<Client>, OAuthError> {
        let Some(documents) = &self.documents else { return Ok(None) };
        let client = documents.renewed(id, peer, &self.settings, &self.clock).await;
        client.map_err(|Unavailable| OAuthError::unavailable())
    }
}

impl Client {
    /// The redirect URI of a request, if it is one of this client's. Without one in the request, the only one.
    pub(crate) fn redirect_uri<'a>(&'a self, requested: Option<&'a str>) -> Option<&'a str> {
        match (requested, &*self.redirect_uris) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(requested), known) => known
                .iter()
                .any(|registered| is_redirect_to(registered, requested, self.public))
                .then_some(requested),
        }
    }

    /// Whether it may use a grant.
    pub(crate) fn may_use(&self, grant: GrantType) -> bool {
        self.grant_types.iter().any(|name| name == grant.name())
    }
}
