//! What a console needs.

use std::sync::Arc;

use kube::Client as KubeClient;
use skep_auth::Places;
use skep_gateway::{ConfigError, body::Budget, outbound::Client};
use tokio::sync::watch;

use crate::{Access, CallLogs, Links, Objects, cluster::Services, limits};

/// The console: what it shows, and to whom.
pub struct Console {
    pub(crate) objects: Arc<Objects>,
    pub(crate) calls: Arc<CallLogs>,
    pub(crate) access: Access,
    pub(crate) links: Links,
    pub(crate) client: Client,
    /// Where servers of a cluster are.
    pub(crate) services: Option<Services>,
    /// The places for streams of changes, of which each user has a part.
    pub(crate) streams: Arc<Places<String>>,
    /// The same for requests to MCP servers.
    pub(crate) requests: Arc<Places<String>>,
    /// The memory of messages to them.
    pub(crate) messages: Budget,
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
            streams: Places::new(limits::STREAMS, limits::STREAMS_OF_USER),
            requests: Places::new(limits::MCP_REQUESTS, limits::MCP_REQUESTS_OF_USER),
            messages: Budget::new(limits::MESSAGES),
            is_closing: watch::Sender::new(false),
        })
    }

    /// The same, which finds servers of a cluster with the console's own client.
    pub fn with_services(self, client: KubeClient) -> Self {
        Self { services: Some(Services::new(client)), ..self }
    }

    /// The same with these links.
    pub fn with_links(self, links: Links) -> Self {
        Self { links, ..self }
    }
}
