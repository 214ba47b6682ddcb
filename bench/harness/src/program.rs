//! What is measured: programs by their command lines.

use std::str::FromStr;

use anyhow::{Context, Error, Result};

use crate::Running;

/// A program to measure.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it is called in the tables.
    pub name: String,
    /// Its command line, with placeholders.
    pub command: String,
}

impl Program {
    /// skep by this command line, and the others.
    pub fn skep_and(others: &[Self], command: &str) -> Vec<Self> {
        let skep = Self { name: "skep".into(), command: command.into() };
        std::iter::once(skep).chain(others.iter().cloned()).collect()
    }

    /// Starts it, and waits until it listens on this port. What is in braces in its command line is replaced.
    pub async fn start(&self, replacements: &[(&str, &str)], port: u16) -> Result<Running> {
        let running = Running::start(&self.command, replacements, port).await;
        running.with_context(|| format!("{}: {}", self.name, self.command))
    }
}

impl FromStr for Program {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, command) = text.split_once('=').context("write NAME=COMMAND")?;
        Ok(Self { name: name.into(), command: command.into() })
    }
}
