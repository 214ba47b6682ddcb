//! Users log in at an identity provider.

use anyhow::{Result, ensure};
use rcgen::KeyPair;
use serde_json::json;

use super::{Cluster, only, proxy_pods, server_ready, text, url};
use crate::{
    kubectl::ready,
    manifests::{self, USERS},
    stopwatch::until,
};

const DEX: &str = "http://dex.default.svc.cluster.local:5556/dex";

/// A client of OAuth that others wrote finds the authorization server of the proxy, registers, and sends its user there, who logs in at
/// dex. Then another pod has the proxy: the client goes on with its refresh token, and the server with the user's token of dex, which
/// has expired meanwhile.
pub(super) fn users_log_in_and_stay_logged_in_when_the_proxy_is_replaced(
    cluster: &Cluster<'_>,
) -> Result<()> {
    let result = log_in(cluster);
    let objects = "pod,service,configmap,secret";
    cluster.kubectl.run(&["delete", objects, "-l", "app=dex", "-n", USERS, "--wait"])?;
    result
}

fn log_in(cluster: &Cluster<'_>) -> Result<()> {
    let resource = url("login", "streamable-http");
    let origin = resource.trim_end_matches("/mcp");
    let redis = cluster.node.redis()?;
    let mut objects = manifests::dex(DEX, &format!("{origin}/oauth/callback"));
    objects.push(manifests::secret(
        "login",
        &json!({
            "signing": KeyPair::generate()?.serialize_pem(), "hmac": "e2e-".repeat(8), "encryption": "key-".repeat(8),
            // This Redis accepts every password of its only user.
            "user": "default", "password": "any",
        }),
    ));
    cluster.kubectl.apply(&objects)?;
    cluster.kubectl.wait(&["pod", "dex", "-n", USERS], ready)?;
    cluster.kubectl.apply(&manifests::server_with_login("login", origin, DEX, &redis))?;
    server_ready(cluster, "login")?;
    let calling = until("a login", || cluster.caller.log_in(&resource).map(Some))?;

    let before = only(proxy_pods(cluster, "login")?)?;
    let name = text(&before, "/metadata/name")?;
    cluster.kubectl.run(&["delete", "pod", name, "-n", USERS, "--wait"])?;
    until("another proxy", || {
        let pods = proxy_pods(cluster, "login")?;
        Ok(pods.iter().any(|pod| pod["metadata"]["name"] != name && ready(pod)).then_some(()))
    })?;
    // Its Service leads there a moment later.
    until("a response of the other proxy", || {
        let unauthenticated = cluster.caller.echo_as(&resource, None).err();
        Ok(unauthenticated.filter(|error| format!("{error:#}").contains("401")))
    })?;
    let report = calling.output()?;
    let expected = json!({"registrations": 1, "logins": 1, "isSameUser": true, "isRotated": true});
    ensure!(report == expected, "the client reports {report}");
    Ok(())
}
