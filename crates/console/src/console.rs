//! What a console needs.

use std::sync::Arc;

use kube::Client as KubeClient;
use skep_gateway::{ConfigError, outbound::Client};
use tokio::sync::{Semaphore, watch};

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
    /// The places for streams of changes.
    pub(crate) streams: Arc<Semaphore>,
    /// The places for requests to MCP servers.
    pub(crate) requests: Arc<Semaphore>,
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
            streams: Arc::new(Semaphore::new(limits::STREAMS)),
            requests: Arc::new(Semaphore::new(limits::MCP_REQUESTS)),
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
