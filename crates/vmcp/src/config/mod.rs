//! From the configuration file to a virtual server.

mod authorization;
mod backends;
mod chain;
mod explain;
mod warnings;

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use skep_api::{
    vmcp::{Config, PartialFailureMode},
    workload::SessionProvider,
};
use skep_auth::Seal;
use skep_config::{FieldError, env};
use skep_gateway::{
    body::Budget,
    endpoint::{Extras, Parts as EndpointParts},
    http::WellKnown,
    sessions::Records,
};
use skep_workflow::check_tools;
use tokio::sync::watch;
use tracing::warn;

use crate::{
    ConfigError, VirtualServer,
    backend::Blueprint,
    catalog::Composite,
    cluster::Cluster,
    discovery::Discovery,
    front::Parts,
    limits,
    report::Reporter,
    scripts::{EXECUTE_TOOL_SCRIPT, Scripts},
    search::{CALL_TOOL, FIND_TOOL, Search},
    views::{ViewPolicy, Views},
};
pub use explain::{Destination, Explained, Offer};

/// Where a virtual server listens, and what else its command line sets.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address.
    pub host: String,
    /// How long a session lives without being used.
    pub session_life: Option<Duration>,
    /// Whether requests are audited if the configuration does not decide that.
    pub audits: bool,
}

/// The prefix of sessions in Redis, unless it is configured.
const KEY_PREFIX: &str = "thv:vmcp:session:";

/// The shortest secret that cannot be guessed: the operator's has 44 bytes.
const SESSION_SECRET: usize = 32;
/// What its key for runs of workflows is derived for.
const KEPT_RUNS: &str = "skep: kept runs of workflows, 1";

/// A configuration that was checked.
pub struct Settings {
    config: Config,
    extras: Extras,
    seal: Arc<Seal>,
    variables: Variables,
}

/// Environment variables: those that are given here, and for others those of the process. They have secrets.
#[derive(Default)]
pub(crate) struct Variables {
    given: BTreeMap<String, String>,
    /// The value of each secret that is not set, where a file is checked away from its secrets.
    stand_in: Option<&'static str>,
}

impl Variables {
    fn get(&self, name: &str) -> Option<String> {
        self.given.get(name).cloned().or_else(|| std::env::var(name).ok())
    }

    fn secret(&self, name: &str) -> Option<String> {
        self.get(name).or_else(|| self.stand_in.map(str::to_owned))
    }

    /// A secret that the process need not have.
    fn given_secret(&self, name: &str) -> Option<String> {
        self.given.get(name).cloned().or_else(|| self.stand_in.map(str::to_owned))
    }
}

impl Settings {
    /// Parses and checks a file. All its errors are reported at once.
    pub fn parse(text: &str) -> Result<Self, Vec<FieldError>> {
        let config = Config::parse_checked(text, |config| {
            let mut errors = check_tools(config);
            errors.extend(chain::policy_errors(config));
            errors
        })?;
        Ok(Self { config, extras: Extras::default(), seal: Arc::default(), variables: Variables::default() })
    }

    /// Doubtful settings, which are served all the same.
    pub fn warnings(&self) -> Vec<FieldError> {
        warnings::warnings(&self.config)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the parts that the program adds to the endpoint.
    pub fn with_extras(self, extras: Extras) -> Result<Self, ConfigError> {
        if let Some(server) = &extras.authorization_server {
            authorization::check(&self.config, &**server)?;
        }
        Ok(Self { extras, ..self })
    }

    /// The same with variables that the process does not have.
    pub fn with_variables(self, variables: BTreeMap<String, String>) -> Self {
        Self { variables: Variables { given: variables, ..self.variables }, ..self }
    }

    /// The same with the secret that all replicas have.
    pub fn with_session_secret(self, secret: &str) -> Result<Self, ConfigError> {
        let wrong = |message: &str| ConfigError::new(format!("{}: {message}", env::VMCP_SESSION_KEY));
        if secret.len() < SESSION_SECRET {
            // What is encrypted with it is still better off than in plain text.
            warn!("{} has fewer than {SESSION_SECRET} bytes: use a longer secret", env::VMCP_SESSION_KEY);
        }
        let seal = Seal::derived(secret.as_bytes(), KEPT_RUNS).map_err(|error| wrong(&error))?;
        Ok(Self { seal: Arc::new(seal), ..self })
    }

    /// Whether backends are discovered in a cluster.
    pub fn is_discovered(&self) -> bool {
        self.config.outgoing_auth.as_ref().is_some_and(|auth| auth.source == "discovered")
    }

    /// The backends that it has.
    pub(crate) fn blueprints(&self) -> Result<Vec<Blueprint>, ConfigError> {
        backends::blueprints(&self.config, &self.variables)
    }

    /// Makes the server to find out whether [`Self::server`] rejects the file. Secrets, a cluster and the audit log file need
    /// not be there: they belong to the place where the file is used.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut config = self.config.clone();
        if let Some(audit) = &mut config.audit {
            audit.log_file = None;
        }
        if let Some(outgoing) = &mut config.outgoing_auth {
            outgoing.source = "inline".into();
        }
        let authorization_server = self.extras.authorization_server.clone();
        let checked = Self {
            config,
            extras: Extras { authorization_server, ..Extras::default() },
            seal: self.seal.clone(),
            variables: Variables { given: self.variables.given.clone(), stand_in: Some("not-set") },
        };
        let listen = Listen { host: "127.0.0.1".into(), session_life: None, audits: false };
        checked.server(&listen, None).map(drop)
    }

    /// The virtual server that it describes. In a cluster it can discover its backends, and reports its status.
    pub fn server(&self, listen: &Listen, cluster: Option<Cluster>) -> Result<VirtualServer, ConfigError> {
        let config = &self.config;
        for warning in self.warnings() {
            warn!("{warning}");
        }
        let changed = Arc::new(watch::Sender::new(0));
        let middlewares = chain::middlewares(config, listen, &self.variables)?;
        let views = Views::new(view_policy(config), changed.clone());
        let budget = Budget::new(skep_gateway::limits::BODIES);
        let factory =
            backends::factory(config, changed, self.extras.authorization_server.clone(), budget.clone())?;
        let blueprints = self.blueprints()?;
        views.replace(&factory, &blueprints).map_err(ConfigError::new)?;
        let reporter = cluster.as_ref().and_then(Reporter::new);
        let discovery = match (self.is_discovered(), cluster) {
            (false, _) => None,
            (true, Some(cluster)) => Some(Discovery::new(cluster, config, blueprints)),
            (true, None) => return Err(ConfigError::new("outgoingAuth.source: discovered needs a cluster")),
        };
        let session_life = listen.session_life.unwrap_or(limits::SESSION_LIFE);
        let name = config.name.as_deref().unwrap_or_default();
        let chain = Arc::new(chain::chain(config, &middlewares, listen, self.extras.clone())?);
        let endpoint = EndpointParts {
            chain: chain.clone(),
            budget: budget.clone(),
            well_known: WellKnown::new(&middlewares, name),
            trusts_proxy_headers: false,
            extras: self.extras.clone(),
        };
        let parts = Parts {
            name: name.into(),
            group: config.group_ref.clone().unwrap_or_default(),
            views: Arc::new(views),
            chain,
            passthrough: config.passthrough_headers.iter().filter_map(|name| name.parse().ok()).collect(),
            session_life,
            records: records(config, session_life)?,
            seal: self.seal.clone(),
            budget,
            is_local: is_local(&listen.host),
            discovery,
            factory,
            reporter,
            scripts: Scripts::new(config.code_mode.as_ref()).map(Arc::new),
            search: config.optimizer.as_ref().map(Search::new).transpose()?.map(Arc::new),
        };
        Ok(VirtualServer::new(endpoint, parts))
    }
}

fn view_policy(config: &Config) -> ViewPolicy {
    let handling = config.operational.as_ref().and_then(|operational| operational.failure_handling.as_ref());
    let mode = handling.and_then(|handling| handling.partial_failure_mode).unwrap_or_default();
    // Their mistakes have been reported.
    let composites = config.composite_tools.iter().map(Composite::new);
    ViewPolicy {
        aggregation: config.aggregation.clone().unwrap_or_default(),
        composites: composites.filter_map(Result::ok).map(Arc::new).collect(),
        own_tools: own_tools(config),
        passes_headers: !config.passthrough_headers.is_empty(),
        fails_without_backends: mode == PartialFailureMode::Fail,
    }
}

/// The tools of the virtual server itself.
fn own_tools(config: &Config) -> &'static [&'static str] {
    const ALL: [&str; 3] = [FIND_TOOL, CALL_TOOL, EXECUTE_TOOL_SCRIPT];
    match (config.optimizer.is_some(), runs_scripts(config)) {
        (true, true) => &ALL,
        (true, false) => &Search::OWN_TOOLS,
        (false, true) => &Scripts::OWN_TOOLS,
        (false, false) => &[],
    }
}

fn runs_scripts(config: &Config) -> bool {
    config.code_mode.as_ref().is_some_and(|mode| mode.enabled == Some(true))
}

/// Where sessions are stored that all replicas see.
fn records(config: &Config, life: Duration) -> Result<Option<Records>, ConfigError> {
    let storage = config.session_storage.as_ref();
    let Some(storage) = storage.filter(|storage| storage.provider == SessionProvider::Redis) else {
        return Ok(None);
    };
    let address = storage.address.as_deref().unwrap_or_default();
    let prefix = storage.key_prefix.as_deref().unwrap_or(KEY_PREFIX);
    Records::new("sessionStorage", address, storage.db.unwrap_or_default(), prefix, life).map(Some)
}

/// Whether an address can be reached from this machine only.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
