//! Clients that are identified by the address of a document (draft-ietf-oauth-client-id-metadata-document).

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value};
use skep_auth::{Fetcher, Place, Places, Reach, counted_address};
use tracing::info;

use super::Metadata;
use crate::{
    clock::Clock,
    config::{DocumentSettings, Settings},
    limits,
    rates::Buckets,
    rules::{Uri, is_document_url},
    store::{Client, Method},
};

/// Fetches and caches documents of clients.
pub(crate) struct Documents {
    fetcher: Fetcher,
    settings: DocumentSettings,
    known: Mutex<HashMap<String, (Client, u64)>>,
    of_peer: Buckets,
    of_host: Buckets,
    /// The places for those that are being fetched. The fetcher has a bound for all of them.
    fetching: Arc<Places>,
}

/// Too many documents are fetched already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyFetches;

impl Documents {
    /// A stranger names the addresses: only public ones are connected to. A server on this machine, to develop with, may
    /// reach this machine.
    pub(crate) fn new(settings: DocumentSettings, is_local: bool) -> Result<Self, String> {
        let reach = Reach { private: is_local, plain: is_local };
        let fetcher = Fetcher::new(reach, None).map_err(|error| error.to_string())?;
        Ok(Self {
            fetcher,
            settings,
            known: Mutex::default(),
            of_peer: Buckets::new(limits::DOCUMENTS),
            of_host: Buckets::new(limits::DOCUMENTS),
            fetching: Places::new(usize::MAX, limits::DOCUMENTS_AT_ONCE),
        })
    }

    /// The client with this address, for a request of another one.
    pub(super) async fn client(
        &self,
        id: &str,
        peer: IpAddr,
        settings: &Settings,
        clock: &Clock,
    ) -> Result<Option<Client>, TooManyFetches> {
        if let Some((client, until)) = self.known().get(id)
            && clock.now() < *until
        {
            return Ok(Some(client.clone()));
        }
        let _fetching = self.begin(id, peer, clock)?;
        match self.fetched(id, settings).await {
            Ok((client, life)) => {
                self.remember(&client, clock.now() + life.as_secs(), clock.now());
                Ok(Some(client))
            }
            Err(reason) => {
                info!(reason, "the document of a client is not accepted");
                Ok(None)
            }
        }
    }

    /// Strangers name the documents: neither do they make this server flood another one, nor does one of them, with slow documents,
    /// keep others from being fetched.
    fn begin(&self, id: &str, peer: IpAddr, clock: &Clock) -> Result<Place, TooManyFetches> {
        let host = Uri::parse(id).map(|uri| uri.host.to_ascii_lowercase()).unwrap_or_default();
        let address = counted_address(peer).to_string();
        if !self.of_peer.admits(&address, clock) || !self.of_host.admits(&host, clock) {
            return Err(TooManyFetches);
        }
        self.fetching.take(peer).ok_or(TooManyFetches)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Client, u64)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, client: &Client, until: u64, now: u64) {
        let mut known = self.known();
        if known.len() >= self.settings.most {
            known.retain(|_, (_, until)| *until > now);
        }
        let first = known.iter().min_by_key(|(_, (_, until))| *until).map(|(id, _)| id.clone());
        if known.len() >= self.settings.most
            && let Some(first) = first
        {
            known.remove(&first);
        }
        known.insert(client.id.clone(), (client.clone(), until));
    }

    async fn fetched(&self, id: &str, settings: &Settings) -> Result<(Client, Duration), String> {
        let uri = id.parse().map_err(|_| "its address is malformed".to_owned())?;
        let response = self.fetcher.document(uri, limits::DOCUMENT, limits::DOCUMENT_TIME).await;
        let response = response.map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("it has the status {}", response.status()));
        }
        if !is_json(response.headers()) {
            return Err("it is not JSON".into());
        }
        let metadata: Metadata =
            serde_json::from_slice(response.body()).map_err(|_| "it is not valid JSON".to_owned())?;
        let mut client = client(id, &metadata, settings)?;
        if client.token_endpoint_auth_method == Method::PrivateKeyJwt {
            client.keys = Some(self.keys(metadata, settings).await?);
        }
        Ok((client, life(response.headers(), self.settings.life)))
    }

    /// The keys that a document has or names. They are fetched under the same conditions as the document.
    async fn keys(&self, metadata: Metadata, settings: &Settings) -> Result<Map<String, Value>, String> {
        let address = match (metadata.jwks, metadata.jwks_uri) {
            (Some(keys), None) => return Ok(keys),
            (None, Some(address)) if is_document_url(&address, settings.is_local()) => address,
            _ => return Err("it must have either jwks or jwks_uri".into()),
        };
        let uri = address.parse().map_err(|_| "its jwks_uri is malformed".to_owned())?;
        let response = self.fetcher.document(uri, limits::DOCUMENT, limits::DOCUMENT_TIME).await;
        let response = response.map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("its keys have the status {}", response.status()));
        }
        serde_json::from_slice(response.body()).map_err(|_| "its keys are not valid JSON".to_owned())
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let type_ = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let type_ = type_.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    type_ == "application/json" || (type_.starts_with("application/") && type_.ends_with("+json"))
}

/// How long a document may be used, by its cache headers (RFC 9111, section 4.2).
fn life(headers: &HeaderMap, default: Duration) -> Duration {
    let values = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<String> =
        values.flat_map(|value| value.split(',')).map(|part| part.trim().to_ascii_lowercase()).collect();
    let has = |name: &str| directives.iter().any(|directive| directive == name);
    let most = directives.iter().find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    // It may have been in a cache for some time.
    let age: u64 = text(headers, &header::AGE).and_then(|age| age.trim().parse().ok()).unwrap_or_default();
    match most.or_else(|| until_expiry(headers)) {
        _ if has("no-store") || has("no-cache") => Duration::ZERO,
        Some(seconds) => Duration::from_secs(seconds.saturating_sub(age)).min(limits::DOCUMENT_LIFE),
        None => default,
    }
}

/// The seconds until a document expires. What is no date is in the past (RFC 9111, section 5.3).
fn until_expiry(headers: &HeaderMap) -> Option<u64> {
    let time = |name| jiff::fmt::rfc2822::parse(text(headers, name)?).ok().map(|time| time.timestamp());
    headers.get(header::EXPIRES)?;
    let sent = time(&header::DATE).unwrap_or_else(jiff::Timestamp::now);
    let left = time(&header::EXPIRES).map(|expires| expires.as_second().saturating_sub(sent.as_second()));
    Some(left.and_then(|left| u64::try_from(left).ok()).unwrap_or_default())
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The client that a document describes. A document has no secrets: the client is public, or signs assertions.
fn client(id: &str, metadata: &Metadata, settings: &Settings) -> Result<Client, String> {
    if metadata.client_id.as_deref() != Some(id) {
        return Err("its client_id is not its address".into());
    }
    let method = match metadata.token_endpoint_auth_method.as_deref() {
        None | Some("none") => Method::None,
        Some("private_key_jwt") => Method::PrivateKeyJwt,
        Some(_) => return Err("its token_endpoint_auth_method is not supported".into()),
    };
    let wrong = |error| format!("{error:?}");
    metadata.check_redirect_uris().map_err(wrong)?;
    metadata.check_names().map_err(wrong)?;
    let supported = |grant: &&String| matches!(grant.as_str(), "authorization_code" | "refresh_token");
    let declared: Vec<String> = metadata.grant_types.iter().filter(supported).cloned().collect();
    let grants = Metadata { grant_types: declared, ..Metadata::default() }.grants().map_err(wrong)?;
    Ok(Client {
        id: id.to_owned(),
        name: metadata.client_name.clone().unwrap_or_default(),
        redirect_uris: metadata.redirect_uris.clone(),
        grant_types: grants,
        response_types: vec!["code".into()],
        scopes: metadata.scopes(settings).map_err(wrong)?,
        audience: settings.audiences.clone(),
        public: method == Method::None,
        dcr_issued: false,
        token_endpoint_auth_method: method,
        secret_hash: String::new(),
        any_secret_method: false,
        keys: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_cached_as_its_headers_say() {
        let most = limits::DOCUMENT_LIFE.as_secs();
        let (date, later) = (("date", "Tue, 17 Nov 2026 06:00:00 GMT"), "Tue, 17 Nov 2026 06:02:00 GMT");
        for (fields, expected) in [
            (&[("cache-control", "public, max-age=60")][..], 60),
            (&[("cache-control", "no-store")], 0),
            (&[("cache-control", "no-cache, max-age=60")], 0),
            (&[("cache-control", "public")], 300),
            (&[("cache-control", "max-age=99999999")], most),
            (&[("cache-control", "max-age=60"), ("age", "50")], 10),
            (&[("cache-control", "max-age=60"), ("age", "61")], 0),
            (&[date, ("expires", later)], 120),
            (&[date, ("expires", later), ("age", "100")], 20),
            (&[date, ("expires", later), ("cache-control", "max-age=7")], 7),
            (&[date, ("expires", later), ("cache-control", "no-store")], 0),
            (&[("expires", later), ("date", later)], 0),
            (&[("expires", date.1), ("date", later)], 0),
            (&[("expires", "Tue, 17 Nov 2099 06:02:00 GMT")], most),
            (&[("expires", "0")], 0),
            (&[], 300),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(life(&headers, Duration::from_secs(300)).as_secs(), expected, "{fields:?}");
        }
    }
}
