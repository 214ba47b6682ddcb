//! Ports that are used unless a spec says otherwise.

/// Where a proxy listens.
pub const PROXY: u16 = 8080;
/// Where an MCP server behind its proxy listens.
pub const MCP_SERVER: u16 = 8080;
/// Where a virtual MCP server listens.
pub const VMCP: u16 = 4483;
/// Where Prometheus scrapes a proxy.
pub const PROMETHEUS: u16 = 9464;

/// The name of the port of a proxy's container and Service.
pub const HTTP: &str = "http";
/// The path that every probe of a proxy asks for.
pub const HEALTH_PATH: &str = "/health";
/// The path where a virtual MCP server says whether it is ready for requests.
pub const READY_PATH: &str = "/readyz";
