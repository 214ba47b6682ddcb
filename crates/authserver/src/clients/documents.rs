//! Clients that are identified by the address of a document (draft-ietf-oauth-client-id-metadata-document).

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value};
use skep_auth::{FetchError, Fetcher, Place, Places, Reach, counted_address};
use tokio::sync::OnceCell;
use tracing::info;

use super::Metadata;
use crate::{
    clock::Clock,
    config::{DocumentSettings, Settings},
    limits,
    rates::Buckets,
    rules::is_document_url,
    store::{Client, Method},
    upstreams::is_transient,
};

/// Fetches and caches documents of clients.
pub(crate) struct Documents {
    fetcher: Fetcher,
    settings: DocumentSettings,
    known: Mutex<HashMap<String, Known>>,
    /// Documents that are being fetched: all who wait for one share what comes of it.
    flights: Mutex<HashMap<String, Flight>>,
    of_peer: Buckets,
    /// The places for those that are being fetched. The fetcher has a bound for all of them.
    fetching: Arc<Places>,
}

/// A client, as its document was when it was fetched.
#[derive(Clone)]
struct Known {
    client: Client,
    version: Option<HeaderValue>,
    /// When it was fetched, in seconds since 1970.
    fetched_at: u64,
    /// Until when it is used without another look at the document, in seconds since 1970.
    fresh_until: u64,
    /// Until when it is used if the document cannot be fetched.
    usable_until: u64,
}

type Fetched = Result<Known, Failure>;

/// A document that is being fetched.
#[derive(Default)]
struct Flight {
    result: Arc<OnceCell<Fetched>>,
    waiting: usize,
}

/// One request that waits for a document. It is dropped where its client leaves, too: the last one takes the flight along, as
/// strangers name documents that never come.
struct Waiting<'a> {
    documents: &'a Documents,
    id: &'a str,
    result: Arc<OnceCell<Fetched>>,
}

impl<'a> Waiting<'a> {
    fn new(documents: &'a Documents, id: &'a str) -> Self {
        let mut flights = documents.flights();
        let flight = flights.entry(id.to_owned()).or_default();
        flight.waiting += 1;
        Self { documents, id, result: flight.result.clone() }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut flights = self.documents.flights();
        let Some(flight) = flights.get_mut(self.id).filter(|known| Arc::ptr_eq(&known.result, &self.result))
        else {
            return;
        };
        flight.waiting -= 1;
        // The next request fetches it again, if it must.
        if flight.waiting == 0 || flight.result.initialized() {
            flights.remove(self.id);
        }
    }
}

/// Why there is no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// Its host cannot respond now.
    Unavailable,
    /// What its host serves is no document: that may be an error of the host.
    Malformed,
    /// The document is not there, or describes no client that is accepted.
    Refused,
}

/// The client cannot be known now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unavailable;

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
            flights: Mutex::default(),
            of_peer: Buckets::new(limits::DOCUMENTS),
            fetching: Places::new(usize::MAX, limits::DOCUMENTS_AT_ONCE),
        })
    }

    /// The client with this address, for a request of another one. One that was known is known on while its document cannot be
    /// fetched: its users neither log in again nor lose the way to end their sessions.
    pub(super) async fn client(
        &self,
        id: &str,
        peer: IpAddr,
        settings: &Settings,
        clock: &Clock,
    ) -> Result<Option<Client>, Unavailable> {
        let (known, now) = (self.known().get(id).cloned(), clock.now());
        if let Some(known) = known.as_ref().filter(|known| now < known.fresh_until) {
            return Ok(Some(known.client.clone()));
        }
        let version = known.as_ref().and_then(|known| known.version.clone());
        let known = known.filter(|known| now < known.usable_until);
        match (self.fetch(id, version, peer, settings, clock).await, known) {
            (Ok(found), _) => Ok(Some(found.client)),
            (Err(Failure::Unavailable | Failure::Malformed), Some(known)) => {
                let fresh_until = now + limits::DOCUMENT_PAUSE.as_secs();
                let client = known.client.clone();
                self.remember(Known { fresh_until, ..known }, now);
                Ok(Some(client))
            }
            (Err(Failure::Unavailable), None) => Err(Unavailable),
            (Err(Failure::Malformed | Failure::Refused), _) => {
                self.known().remove(id);
                Ok(None)
            }
        }
    }

    /// The same for a client whose keys, as they are known, have not signed what it has sent: it may have new ones. That is looked for
    /// now and then only, as anyone can send what nobody has signed.
    pub(super) async fn renewed(
        &self,
        id: &str,
        peer: IpAddr,
        settings: &Settings,
        clock: &Clock,
    ) -> Result<Option<Client>, Unavailable> {
        let now = clock.now();
        if let Some(known) = self.known().get_mut(id)
            && now >= known.fetched_at + limits::DOCUMENT_PAUSE.as_secs()
        {
            // The keys may have changed where the document has not.
            (known.fresh_until, known.version) = (now, None);
        }
        self.client(id, peer, settings, clock).await
    }

    /// Fetches a document, together with all others who wait for it.
    async fn fetch(
        &self,
        id: &str,
        version: Option<HeaderValue>,
        peer: IpAddr,
        settings: &Settings,
        clock: &Clock,
    ) -> Fetched {
        let waiting = Waiting::new(self, id);
        let fetching = waiting.result.get_or_try_init(async || {
            // What one address has too many of is not the failure of the others who wait.
            let _place = self.begin(peer, clock).ok_or(Failure::Unavailable)?;
            let found = self.fetched(id, version, settings, clock.now()).await;
            if let Ok(found) = &found {
                self.remember(found.clone(), clock.now());
            }
            Ok(found)
        });
        fetching.await.cloned().and_then(|found| found)
    }

    /// Strangers name the documents: neither does an address make this server flood another one, nor does it, with slow documents,
    /// keep others from being fetched.
    fn begin(&self, peer: IpAddr, clock: &Clock) -> Option<Place> {
        let is_admitted = self.of_peer.admits(&counted_address(peer).to_string(), clock);
        self.fetching.take(peer).filter(|_| is_admitted)
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<String, Flight>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many documents are being fetched.
    #[cfg(test)]
    pub(crate) fn fetching(&self) -> usize {
        self.flights().len()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, found: Known, now: u64) {
        let mut known = self.known();
        if known.len() >= self.settings.most && !known.contains_key(&found.client.id) {
            known.retain(|_, known| known.usable_until > now);
            let first = known.iter().min_by_key(|(_, known)| known.fresh_until).map(|(id, _)| id.clone());
            if known.len() >= self.settings.most
                && let Some(first) = first
            {
                known.remove(&first);
            }
        }
        known.insert(found.client.id.clone(), found);
    }

    async fn fetched(
        &self,
        id: &str,
        version: Option<HeaderValue>,
        settings: &Settings,
        now: u64,
    ) -> Fetched {
        let response = self.response(id, version).await?;
        let life = life(response.headers(), self.settings.life).max(limits::DOCUMENT_LEAST_LIFE);
        let fresh_until = now + life.as_secs();
        let usable_until = fresh_until + limits::DOCUMENT_LIFE.as_secs();
        let known = self.known().get(id).cloned();
        if let Some(known) = known.filter(|_| response.status() == StatusCode::NOT_MODIFIED) {
            return Ok(Known { fetched_at: now, fresh_until, usable_until, ..known });
        }
        if response.status() != StatusCode::OK {
            return Err(refused(&format!("it has the status {}", response.status())));
        }
        let metadata: Option<Metadata> = serde_json::from_slice(response.body()).ok();
        let Some(metadata) = metadata.filter(|_| is_json(response.headers())) else {
            info!("the document of a client is not valid JSON");
            return Err(Failure::Malformed);
        };
        let mut client = client(id, &metadata, settings).map_err(|reason| refused(&reason))?;
        if client.token_endpoint_auth_method == Method::PrivateKeyJwt {
            client.keys = Some(self.keys(metadata, settings).await?);
        }
        let version = response.headers().get(header::ETAG).cloned();
        Ok(Known { client, version, fetched_at: now, fresh_until, usable_until })
    }

    /// The keys that a document has or names. They are fetched under the same conditions as the document.
    async fn keys(&self, metadata: Metadata, settings: &Settings) -> Result<Map<String, Value>, Failure> {
        let address = match (metadata.jwks, metadata.jwks_uri) {
            (Some(keys), None) => return Ok(keys),
            (None, Some(address)) if is_document_url(&address, settings.is_local()) => address,
            _ => return Err(refused("it must have either jwks or jwks_uri")),
        };
        let response = self.response(&address, None).await?;
        if response.status() != StatusCode::OK {
            return Err(refused(&format!("its keys have the status {}", response.status())));
        }
        serde_json::from_slice(response.body()).map_err(|_| Failure::Malformed)
    }

    /// What is at an address, unless its host cannot respond now.
    async fn response(
        &self,
        address: &str,
        version: Option<HeaderValue>,
    ) -> Result<Response<Bytes>, Failure> {
        let uri = address.parse().map_err(|_| refused("an address is malformed"))?;
        match self.fetcher.document(uri, version, limits::DOCUMENT, limits::DOCUMENT_TIME).await {
            Ok(response) if is_transient(response.status()) => {
                info!(status = %response.status(), "the document of a client cannot be fetched now");
                Err(Failure::Unavailable)
            }
            Ok(response) => Ok(response),
            Err(error) => {
                info!(%error, "the document of a client cannot be fetched");
                Err(match error {
                    FetchError::Answer(..) => Failure::Malformed,
                    error if error.is_transient() => Failure::Unavailable,
                    _ => Failure::Refused,
                })
            }
        }
    }
}

fn refused(reason: &str) -> Failure {
    info!(reason, "the document of a client is not accepted");
    Failure::Refused
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
        scopes: metadata.supported_scopes(settings),
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
