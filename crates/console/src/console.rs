//! What a console needs.

use std::sync::Arc;

use kube::Client as KubeClient;
use skep_auth::Places;
use skep_gateway::{ConfigError, body::Budget, outbound::Client};
use tokio::sync::watch;

use crate::{
    Access, Account, CallLogs, Links, Objects,
    cluster::{Administrator, Services},
    limits,
};

/// The console: what it shows, and to whom.
pub struct Console {
    pub(crate) objects: Arc<Objects>,
    pub(crate) calls: Arc<CallLogs>,
    pub(crate) access: Access,
    pub(crate) links: Links,
    pub(crate) client: Client,
    /// Where servers of a cluster are.
    pub(crate) services: Option<Services>,
    /// Administers authorization servers, in a cluster that lets the console do so.
    pub(crate) administrator: Option<Administrator>,
    /// The places for streams of changes, of which each user has a part.
    pub(crate) streams: Arc<Places<String>>,
    /// The same for requests to MCP servers.
    pub(crate) requests: Arc<Places<String>>,
    /// The memory of messages to them.
    pub(crate) messages: Budget,
    /// The places for requests about the sessions of users.
    pub(crate) administrations: Arc<Places<String>>,
    /// Whether streams are to end.
    pub(crate) is_closing: watch::Sender<bool>,
}

impl Console {
    /// A console for those who have access.
    pub fn new(objects: Arc<Objects>, calls: Arc<CallLogs>, access: Access) -> Result<Self, ConfigError> {
        Ok(Self {
            objects,
            calls,
            access,
            links: Links::default(),
            client: Client::new(false)?,
            services: None,
            administrator: None,
            streams: Places::new(limits::STREAMS, limits::STREAMS_OF_USER),
            requests: Places::new(limits::MCP_REQUESTS, limits::MCP_REQUESTS_OF_USER),
            administrations: Places::new(limits::ADMINISTRATIONS, limits::ADMINISTRATIONS_OF_USER),
            messages: Budget::new(limits::MESSAGES),
            is_closing: watch::Sender::new(false),
        })
    }

    /// The same, which finds servers of a cluster with the console's own client.
    pub fn with_services(self, client: KubeClient) -> Self {
        Self { services: Some(Services::new(client)), ..self }
    }

    /// Lets users administer sessions, with the console's own client and account.
    pub fn with_administration(self, client: KubeClient, account: Account) -> Result<Self, ConfigError> {
        Ok(Self { administrator: Some(Administrator::new(client, account)?), ..self })
    }

    /// The same with these links.
    pub fn with_links(self, links: Links) -> Self {
        Self { links, ..self }
    }
}
