//! Default ports, and paths of probes.

/// The port of a proxy.
pub const PROXY: u16 = 8080;
/// The port of an MCP server behind its proxy.
pub const MCP_SERVER: u16 = 8080;
/// The port of a virtual MCP server.
pub const VMCP: u16 = 4483;
/// The port at which Prometheus scrapes a proxy.
pub const PROMETHEUS: u16 = 9464;

/// The name of the port of a proxy's container and Service.
pub const HTTP: &str = "http";
/// The path of every probe of a proxy.
pub const HEALTH_PATH: &str = "/health";
/// The path of a virtual MCP server's readiness probe.
pub const READY_PATH: &str = "/readyz";
