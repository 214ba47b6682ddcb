//! The identity provider of the example, which others wrote.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use skep_testkit::{free_port, install, repository};

use crate::login::Browser;

/// The identity provider of the example, as a process.
pub(super) struct Provider {
    process: Child,
    pub(super) port: u16,
}

impl Provider {
    pub(super) fn start() -> Self {
        let script = repository("examples/authorization-server/identity-provider.mjs");
        let port = free_port();
        let path = format!("{}/.bin:{}", modules().display(), std::env::var("PATH").unwrap());
        let mut process = Command::new("node")
            .arg(script)
            .arg(port.to_string())
            .env("PATH", path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        // It prints more, and must not wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        assert!(line.contains("the identity provider is at"), "{line}");
        Self { process, port }
    }

    /// Logs a user in, in the pages that it shows. Returns where it sends the browser at the end.
    pub(super) fn log_in(&self, browser: &mut Browser, url: &str) -> String {
        let origin = format!("http://127.0.0.1:{}", self.port);
        let absolute = |location: &str| match location.starts_with('/') {
            true => format!("{origin}{location}"),
            false => location.to_owned(),
        };
        let mut page = browser.open(url);
        for _ in 0..12 {
            if let Some(location) = page.header("location") {
                let location = absolute(location);
                if !location.starts_with(&origin) {
                    return location;
                }
                page = browser.open(&location);
                continue;
            }
            assert_eq!(page.status, 200, "{}{}", page.head, page.body);
            let between = |text: &str, before: &str| {
                let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}")).1;
                rest.split('"').next().unwrap().to_owned()
            };
            let action = absolute(&between(&page.body, "action=\""));
            let prompt = between(page.body.split_once("name=\"prompt\"").unwrap().1, "value=\"");
            let form = [("prompt", &*prompt), ("login", "ann"), ("password", "any")];
            page = browser.submit(&action, &form.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        panic!("the login at the provider does not end: {}", page.body)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The folder of the modules from npm.
pub(super) fn modules() -> PathBuf {
    install("npm", &["oauth"]).unwrap()
}
