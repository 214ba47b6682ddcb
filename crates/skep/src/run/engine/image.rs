//! Pulling a missing image.

use std::{collections::BTreeMap, env, time::Duration};

use http::{Method, StatusCode};
use serde_json::Value;
use skep_mcp::stdio::{Line, Lines};
use tokio::{task::spawn_blocking, time::timeout};

use super::{
    Engine,
    api::{EngineError, EngineResponse, query},
    credentials::registry_auth,
};

/// The longest line of progress that is read.
const LONGEST: usize = 64 << 10;
/// How long a pull may make no progress.
const SILENCE: Duration = Duration::from_secs(300);

impl Engine {
    /// Pulls an image if the engine does not have it. `report` gets the progress.
    pub(in super::super) async fn pull_if_missing(
        &self,
        image: &str,
        report: impl Fn(String),
    ) -> Result<(), String> {
        let known = self.api.send(Method::GET, &format!("/images/{image}/json"), None).await;
        match known {
            Ok(_) => return Ok(()),
            Err(EngineError { status: Some(StatusCode::NOT_FOUND), .. }) => {}
            Err(problem) => return Err(format!("cannot inspect the image {image}: {problem}")),
        }
        report(format!("pulling the image {image}"));
        let (name, tag) = parts(image);
        let path = format!("/images/create?{}", query(&[("fromImage", name), ("tag", tag)]));
        let of_image = image.to_owned();
        // A credential helper may open the keychain of the user.
        let auth = spawn_blocking(move || registry_auth(&of_image, |name| env::var(name).ok()));
        let auth = auth.await.ok().flatten();
        let got = async {
            let response = self.api.pull(&path, auth.as_deref()).await?;
            follow_progress(response, |share| report(format!("pulling the image {image}: {share} %"))).await
        };
        got.await.map_err(|problem| format!("cannot pull the image {image}: {problem}"))
    }
}

/// The name and the tag or digest of an image.
fn parts(image: &str) -> (&str, &str) {
    if let Some(parts) = image.split_once('@') {
        return parts;
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

/// Reads the progress of a pull to its end.
async fn follow_progress(mut response: EngineResponse, report: impl Fn(u64)) -> Result<(), EngineError> {
    let (mut lines, mut layers) = (Lines::new(LONGEST), Layers::default());
    let mut reported = 0;
    loop {
        let next = timeout(SILENCE, response.next()).await;
        match next.map_err(|_| EngineError::new("no progress for too long"))?? {
            Some(bytes) => lines.feed(&bytes),
            None => return Ok(()),
        }
        while let Some(line) = lines.line() {
            let Line::Message(line) = line else { continue };
            let Ok(news) = serde_json::from_slice::<Value>(&line) else { continue };
            if let Some(error) = news["error"].as_str().or(news["errorDetail"]["message"].as_str()) {
                return Err(EngineError::new(error));
            }
            // In steps of ten percent.
            let share = layers.share(&news) / 10 * 10;
            if share > reported {
                reported = share;
                report(share);
            }
        }
    }
}

/// The progress and size of each layer of the image.
#[derive(Default)]
struct Layers(BTreeMap<String, (u64, u64)>);

impl Layers {
    /// The downloaded share of all known layers, in percent.
    fn share(&mut self, news: &Value) -> u64 {
        let detail = &news["progressDetail"];
        let is_download = news["status"] == "Downloading";
        if let (true, Some(id), Some(now), Some(all)) =
            (is_download, news["id"].as_str(), detail["current"].as_u64(), detail["total"].as_u64())
        {
            self.0.insert(id.to_owned(), (now.min(all), all));
        }
        if let (Some(id), true) = (news["id"].as_str(), news["status"] == "Download complete")
            && let Some((now, all)) = self.0.get_mut(id)
        {
            *now = *all;
        }
        let (now, all) = self.0.values().fold((0, 0), |(now, all), layer| (now + layer.0, all + layer.1));
        (now * 100).checked_div(all).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_is_its_name_and_its_tag_or_digest() {
        for (image, expected) in [
            ("mcp", ("mcp", "latest")),
            ("registry.example:5000/mcp", ("registry.example:5000/mcp", "latest")),
            ("registry.example:5000/mcp:1.2", ("registry.example:5000/mcp", "1.2")),
            ("a/b@sha256:12", ("a/b", "sha256:12")),
        ] {
            assert_eq!(parts(image), expected);
        }
    }

    #[test]
    fn the_share_is_that_of_all_layers() {
        let mut layers = Layers::default();
        let mut share = |id: &str, status: &str, current: u64| {
            let detail = json!({"current": current, "total": 100});
            layers.share(&json!({"id": id, "status": status, "progressDetail": detail}))
        };
        assert_eq!(share("a", "Pulling fs layer", 0), 0);
        assert_eq!(share("a", "Downloading", 50), 50);
        assert_eq!(share("b", "Downloading", 10), 30);
        assert_eq!(share("a", "Download complete", 0), 55);
        assert_eq!(share("a", "Extracting", 3), 55);
    }
}
