//! Which callers may call which tools.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Cluster, server_ready, url};
use crate::{
    manifests::{self, USERS},
    stopwatch::until,
};

const TRANSPORT: &str = "streamable-http";

/// The cluster's own API server issues the tokens, and the proxy fetches its keys.
pub(super) fn only_a_token_for_the_server_is_accepted(cluster: &Cluster<'_>) -> Result<()> {
    let url = guarded(cluster, "guarded", json!({}))?;
    let token = token(cluster, "guarded")?;
    until("a token is accepted", || cluster.caller.echo_as(&url, Some(&token)).map(Some))?;
    rejected(cluster.caller.echo_as(&url, None), "401")?;
    rejected(cluster.caller.echo_as(&url, Some("no.such.token")), "401")?;
    let for_another = self::token(cluster, "another")?;
    rejected(cluster.caller.echo_as(&url, Some(&for_another)), "401")
}

pub(super) fn a_policy_denies_what_it_does_not_permit(cluster: &Cluster<'_>) -> Result<()> {
    let policies =
        json!([r#"permit(principal, action == Action::"call_tool", resource == Tool::"get-sum");"#]);
    let authz = json!({"authzConfig": {"type": "inline", "inline": {"policies": policies}}});
    let url = guarded(cluster, "policed", authz)?;
    let token = token(cluster, "policed")?;
    let tools = until("its tools", || cluster.caller.tools_as(&url, &token).map(Some))?;
    ensure!(tools == ["get-sum"], "it lists {tools:?}");
    rejected(cluster.caller.echo_as(&url, Some(&token)), "403")
}

/// Creates a server that accepts tokens of the cluster's service accounts, and returns its URL.
fn guarded(cluster: &Cluster<'_>, name: &str, more: Value) -> Result<String> {
    let mut server = manifests::server(name, TRANSPORT);
    server["spec"]["oidcConfigRef"] = json!({"name": "cluster", "audience": name});
    let (Some(spec), Value::Object(more)) = (server["spec"].as_object_mut(), more) else {
        anyhow::bail!("a spec is an object");
    };
    spec.extend(more);
    cluster.kubectl.apply(&[manifests::service_accounts("cluster"), server])?;
    server_ready(cluster, name)?;
    Ok(url(name, TRANSPORT))
}

/// A token of the default service account, for one audience.
fn token(cluster: &Cluster<'_>, audience: &str) -> Result<String> {
    let token = cluster.kubectl.run(&["create", "token", "default", "-n", USERS, "--audience", audience])?;
    Ok(token.trim().to_owned())
}

fn rejected(result: Result<()>, code: &str) -> Result<()> {
    let error = result.err().context("it was not rejected")?;
    ensure!(format!("{error:#}").contains(code), "it was rejected, but not with {code}: {error:#}");
    Ok(())
}
