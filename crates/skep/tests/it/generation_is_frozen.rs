//! While a proxy's Deployment rolls, an old and a new proxy run side by side. The old one must not undo the new one, even
//! when it restarts and reads the file that is mounted live.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::json;
use skep_testkit::{Namespace, User, free_port};

/// A proxy as a process, as in a pod: with a frozen generation, and a file that changes.
struct Pod {
    folder: PathBuf,
    port: u16,
    image: &'static str,
    generation: &'static str,
    process: Option<Child>,
}

impl Pod {
    fn new(test: &Namespace, name: &str, image: &'static str, generation: &'static str) -> Self {
        let folder = test.folder().join(format!("{}-{name}", test.name()));
        fs::create_dir_all(&folder).unwrap();
        let port = free_port();
        Self { folder, port, image, generation, process: None }
    }

    /// The file that the operator has written for this generation of the object.
    fn mounted(&self, image: &str, generation: i64) {
        let config = json!({
            "schema_version": "v0.1.0", "name": "fetch", "container_name": "fetch", "base_name": "fetch",
            "transport": "streamable-http", "host": "127.0.0.1", "port": self.port, "target_port": 8080,
            "image": image, "mcpserver_generation": generation,
            "middleware_configs": [{"type": "auth", "parameters": {}}],
        });
        fs::write(self.folder.join("runconfig.json"), config.to_string()).unwrap();
    }

    /// Starts or restarts the proxy, and waits until it has decided about its server.
    fn start(&mut self, test: &Namespace, user: &User) {
        self.stop();
        let mut process = Command::new(env!("CARGO_BIN_EXE_skep"))
            .args(["proxy", "run", self.image])
            .current_dir(&self.folder)
            .env_clear()
            .env("KUBECONFIG", user.kubeconfig_file())
            .env("POD_NAMESPACE", test.name())
            .env("TOOLHIVE_RUNTIME", "kubernetes")
            .env("OPERATOR_OPENSHIFT", "false")
            .env("THV_MCPSERVER_GENERATION", self.generation)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        self.process = Some(process);
        let (decided, decision) = mpsc::channel();
        // Read to its end, so that the proxy can always write.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if line.contains("server applied")
                    || line.contains("server not applied: it is of a newer generation")
                {
                    decided.send(()).ok();
                }
                eprintln!("{line}");
            }
        });
        let decided = decision.recv_timeout(Duration::from_secs(60));
        assert!(decided.is_ok(), "the proxy of {} does not decide", self.image);
    }

    /// Whether it responds. There is no kubelet, so its server is never ready, and the response reports it.
    fn is_serving(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut response = String::new();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: proxy\r\nconnection: close\r\n\r\n").unwrap();
        stream.read_to_string(&mut response).is_ok()
            && response.starts_with("HTTP/1.1 503")
            && response.contains("starting")
    }

    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.stop();
        fs::remove_dir_all(&self.folder).ok();
    }
}

async fn live(test: &Namespace) -> (String, String, String) {
    let live = test.api::<StatefulSet>().get("fetch").await.unwrap();
    let template = live.spec.unwrap().template;
    let generation =
        template.metadata.unwrap().annotations.unwrap()["toolhive.stacklok.dev/mcpserver-generation"].clone();
    let image = template.spec.unwrap().containers[0].image.clone().unwrap();
    (image, generation, live.metadata.resource_version.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_proxy_that_restarts_does_not_undo_a_new_one() {
    let test = skep_testkit::namespace().await;
    let user = test.admin("proxy");
    let recording = user.record();
    let mut old = Pod::new(&test, "old", "registry.example/mcp:1", "1");
    old.mounted("registry.example/mcp:1", 1);
    old.start(&test, &user);
    let (image, generation, _) = live(&test).await;
    assert_eq!((image.as_str(), generation.as_str()), ("registry.example/mcp:1", "1"));

    // The spec changes: the file of both is new, and the new pod starts while the old one still runs.
    let mut new = Pod::new(&test, "new", "registry.example/mcp:2", "2");
    for pod in [&old, &new] {
        pod.mounted("registry.example/mcp:2", 2);
    }
    new.start(&test, &user);
    let (image, generation, version) = live(&test).await;
    assert_eq!((image.as_str(), generation.as_str()), ("registry.example/mcp:2", "2"));

    // The old one restarts: its file is of generation 2 by now, its pod is not.
    old.start(&test, &user);
    let (image, generation, now) = live(&test).await;
    assert_eq!((image.as_str(), generation.as_str()), ("registry.example/mcp:2", "2"));
    assert_eq!(now, version, "it wrote nothing");
    assert!(new.is_serving() && old.is_serving(), "both still serve");

    let agent = format!("skep-proxy/{}", env!("CARGO_PKG_VERSION"));
    let requests = recording.requests().await;
    assert!(requests.iter().all(|request| request.agent == agent), "{requests:#?}");
}

/// Why the generation is frozen: two pods of one generation overwrite each other.
#[tokio::test(flavor = "multi_thread")]
async fn two_proxies_of_one_generation_overwrite_each_other() {
    let test = skep_testkit::namespace().await;
    let user = test.admin("proxy");
    let mut one = Pod::new(&test, "one", "registry.example/mcp:1", "2");
    let mut other = Pod::new(&test, "other", "registry.example/mcp:2", "2");
    for pod in [&one, &other] {
        pod.mounted("registry.example/mcp:2", 2);
    }
    other.start(&test, &user);
    one.start(&test, &user);
    assert_eq!(live(&test).await.0, "registry.example/mcp:1");
}
