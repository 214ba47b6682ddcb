//! Attaching to the pod of a stdio server.

use std::{io, sync::Mutex};

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::Api;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::{
    pace::Pace,
    pods::{self, ServerPod},
    wire::{ApiServer, Wire},
};
use crate::{
    limits,
    runtime::{Attach, BoxRead, BoxWrite},
};

/// Attaches to the pod of a stdio server that is ready.
pub struct Attachment(Attaching<ApiServer>);

impl Attachment {
    pub(super) fn to(pods: Api<Pod>, owner: &StatefulSet) -> Self {
        Self(Attaching::new(ApiServer(pods.clone()), pods::watch(pods, owner)))
    }
}

impl Attach for Attachment {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        self.0.attach().await
    }
}

struct Attaching<W> {
    wire: W,
    pods: watch::Receiver<Vec<ServerPod>>,
    pace: Mutex<Pace>,
}

impl<W: Wire + Sync> Attaching<W> {
    fn new(wire: W, pods: watch::Receiver<Vec<ServerPod>>) -> Self {
        Self { wire, pods, pace: Mutex::default() }
    }

    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        let mut tries = 0;
        loop {
            let pause = self.pace().pause();
            sleep(pause).await;
            let pod = self.ready().await?;
            let opening = self.wire.open(&pod.name, lost(self.pods.clone(), pod.uid.clone()));
            let opened = timeout(limits::ATTACH_TIME, opening).await;
            tries += 1;
            match opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(streams) => {
                    self.pace().record_success();
                    info!(pod = pod.name, "attached to the server's pod");
                    return Ok(streams);
                }
                Err(error) if tries >= limits::ATTACH_TRIES => {
                    return Err(io::Error::new(error.kind(), format!("attach to pod {}: {error}", pod.name)));
                }
                Err(error) => warn!(pod = pod.name, %error, "failed to attach; retrying"),
            }
        }
    }

    /// Waits for a pod that is ready: the first by name, if there are several.
    async fn ready(&self) -> io::Result<ServerPod> {
        let mut pods = self.pods.clone();
        let first = |pods: &Vec<ServerPod>| pods.iter().find(|pod| pod.ready).cloned();
        let ready = pods.wait_for(|pods| first(pods).is_some()).await.map(|pods| first(&pods));
        ready.ok().flatten().ok_or_else(|| io::Error::other("the watch of the server's pods has ended"))
    }

    fn pace(&self) -> std::sync::MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Completes when the pod does not exist any more, or the watch has ended.
async fn lost(mut pods: watch::Receiver<Vec<ServerPod>>, uid: String) {
    pods.wait_for(|pods| pods.iter().all(|pod| pod.uid != uid)).await.ok();
}

#[cfg(test)]
mod tests {
    use std::{future::Future, sync::Arc, time::Duration};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex, split},
        time::Instant,
    };

    use super::{super::attached, *};

    /// A fake of the API server and the kubelet behind it: it fails so many times, and then echoes.
    #[derive(Clone, Default)]
    struct FakeWire {
        failures: Arc<Mutex<usize>>,
        opened: Arc<Mutex<Vec<(String, Instant)>>>,
    }

    impl Wire for FakeWire {
        async fn open(
            &self,
            pod: &str,
            lost: impl Future<Output = ()> + Send + 'static,
        ) -> io::Result<(BoxRead, BoxWrite)> {
            self.opened.lock().unwrap().push((pod.into(), Instant::now()));
            let mut failures = self.failures.lock().unwrap();
            if *failures > 0 {
                *failures -= 1;
                return Err(io::Error::other("container not found"));
            }
            let (ours, theirs) = duplex(64);
            tokio::spawn(async move {
                let (mut read, mut write) = split(theirs);
                tokio::io::copy(&mut read, &mut write).await.ok();
            });
            let (read, write) = split(ours);
            Ok(attached::until(lost, read, write))
        }
    }

    fn pod(name: &str, uid: &str, ready: bool) -> ServerPod {
        ServerPod { name: name.into(), uid: uid.into(), ready }
    }

    fn fixture(failures: usize) -> (Attaching<FakeWire>, FakeWire, watch::Sender<Vec<ServerPod>>) {
        let (pods, seen) = watch::channel(Vec::new());
        let wire = FakeWire { failures: Arc::new(Mutex::new(failures)), ..FakeWire::default() };
        (Attaching::new(wire.clone(), seen), wire, pods)
    }

    fn opened(wire: &FakeWire) -> Vec<String> {
        wire.opened.lock().unwrap().iter().map(|(pod, _)| pod.clone()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_pod_that_becomes_ready_is_attached_to() {
        let (attaching, wire, pods) = fixture(0);
        pods.send_replace(vec![pod("files-0", "a", false), pod("files-1", "b", false)]);
        let attached = tokio::spawn(async move {
            let (mut read, mut write) = attaching.attach().await.unwrap();
            write.write_all(b"ping").await.unwrap();
            let mut answer = [0; 4];
            read.read_exact(&mut answer).await.unwrap();
            answer
        });
        sleep(Duration::from_secs(5)).await;
        assert_eq!(opened(&wire), [] as [&str; 0]);
        pods.send_replace(vec![pod("files-0", "a", false), pod("files-1", "b", true)]);
        assert_eq!(&attached.await.unwrap(), b"ping");
        assert_eq!(opened(&wire), ["files-1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_is_replaced_ends_the_streams_and_its_successor_is_attached_to() {
        let (attaching, wire, pods) = fixture(0);
        pods.send_replace(vec![pod("files-0", "a", true)]);
        let (mut read, _write) = attaching.attach().await.unwrap();
        // Not ready is not the end.
        pods.send_replace(vec![pod("files-0", "a", false)]);
        assert!(timeout(Duration::from_secs(60), read.read(&mut [0; 1])).await.is_err());
        pods.send_replace(vec![pod("files-0", "b", true)]);
        assert_eq!(read.read(&mut [0; 1]).await.unwrap(), 0);
        attaching.attach().await.unwrap();
        assert_eq!(opened(&wire), ["files-0", "files-0"]);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_are_reset_after_an_attachment_that_lasted() {
        let (attaching, wire, pods) = fixture(3);
        pods.send_replace(vec![pod("files-0", "a", true)]);
        let begin = Instant::now();
        attaching.attach().await.unwrap();
        let times: Vec<Instant> = wire.opened.lock().unwrap().iter().map(|(_, time)| *time).collect();
        let pauses: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (pause, least) in pauses.iter().zip([1, 2, 4]) {
            let least = Duration::from_secs(least);
            assert!((least..=2 * least).contains(pause), "{pauses:?}");
        }
        assert_eq!(times[0], begin);
        // It ends at once: that was no success.
        let before = Instant::now();
        attaching.attach().await.unwrap();
        assert!(before.elapsed() >= Duration::from_secs(8), "{:?}", before.elapsed());
        sleep(limits::ATTACH_STABLE).await;
        let before = Instant::now();
        attaching.attach().await.unwrap();
        assert_eq!(before.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_names_the_pod_and_the_cause() {
        let (attaching, wire, pods) = fixture(usize::MAX);
        pods.send_replace(vec![pod("files-0", "a", true)]);
        let Err(error) = attaching.attach().await else { panic!("it attached") };
        assert_eq!(error.to_string(), "attach to pod files-0: container not found");
        assert_eq!(opened(&wire).len(), limits::ATTACH_TRIES);
    }
}
