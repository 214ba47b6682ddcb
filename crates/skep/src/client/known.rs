//! MCP clients, and where they keep their configuration.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A client with a configuration that skep can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KnownClient {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
}

impl KnownClient {
    pub(super) const ALL: [Self; 4] = [Self::ClaudeCode, Self::ClaudeDesktop, Self::Cursor, Self::VsCode];

    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
        }
    }

    /// The file of the user.
    pub(super) fn file(self, env: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        let home = env("HOME")?;
        let settings = match env("XDG_CONFIG_HOME") {
            _ if cfg!(target_os = "macos") => home.join("Library/Application Support"),
            Some(folder) => folder,
            None => home.join(".config"),
        };
        Some(match self {
            Self::ClaudeCode => env("CLAUDE_CONFIG_DIR").unwrap_or(home).join(".claude.json"),
            Self::ClaudeDesktop => settings.join("Claude/claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::VsCode => settings.join("Code/User/mcp.json"),
        })
    }

    /// Whether it is installed: it has created the folder of its file.
    pub(super) fn is_installed(file: &Path) -> bool {
        file.parent().is_some_and(Path::is_dir)
    }

    /// The field with the servers.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            _ => "mcpServers",
        }
    }

    /// A server in its configuration.
    pub(super) fn entry(self, url: &str, transport: &str) -> Value {
        match self {
            Self::ClaudeCode | Self::VsCode => {
                let type_ = if transport == "sse" { "sse" } else { "http" };
                json!({"type": type_, "url": url})
            }
            Self::Cursor => json!({"url": url}),
            // It starts processes only.
            Self::ClaudeDesktop => json!({"command": "npx", "args": ["-y", "mcp-remote", url]}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn each_client_has_its_file() {
        let file = |client: KnownClient, variables: &[(&str, &str)]| {
            client
                .file(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, path)| path.into()))
        };
        let home = [("HOME", "/h")];
        let files = KnownClient::ALL.map(|client| file(client, &home).unwrap());
        let expected = [
            "/h/.claude.json",
            "/h/.config/Claude/claude_desktop_config.json",
            "/h/.cursor/mcp.json",
            "/h/.config/Code/User/mcp.json",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
        let other = [("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("CLAUDE_CONFIG_DIR", "/claude")];
        assert_eq!(file(KnownClient::VsCode, &other), Some("/c/Code/User/mcp.json".into()));
        assert_eq!(file(KnownClient::ClaudeCode, &other), Some("/claude/.claude.json".into()));
        assert_eq!(file(KnownClient::Cursor, &[]), None);
    }
}
