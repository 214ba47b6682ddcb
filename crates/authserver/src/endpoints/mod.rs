//! The endpoints.

mod authorize;
mod callback;
mod connections;
mod consent;
mod cors;
mod finish;
mod metadata;
mod register;
mod revoke;
mod sessions;
mod token;

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Limited};
use tokio::time::timeout;

use crate::{
    AuthServer,
    browser::{Browser, Cookies, readable, set_browser},
    config::Settings,
    error, limits,
    rates::Purpose,
    response,
    rules::{Parameters, Uri},
};

/// The prefix of most endpoints.
const PREFIX: &str = "/oauth/";
const KEYS: &str = "/.well-known/jwks.json";
const OAUTH_METADATA: &str = "/.well-known/oauth-authorization-server";
const OPENID_METADATA: &str = "/.well-known/openid-configuration";

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Authorize,
    Callback,
    Consent,
    Connections,
    Token,
    Register,
    Revoke,
    Keys,
    OauthMetadata,
    OpenidMetadata,
    /// A path of this server without an endpoint.
    Unknown,
}

/// What a path leads to, if it is one of this server.
pub(crate) fn route(path: &str, settings: &Settings) -> Option<Route> {
    if let Some(name) = path.strip_prefix(PREFIX) {
        return Some(match name {
            "authorize" => Route::Authorize,
            "callback" => Route::Callback,
            "consent" => Route::Consent,
            "connections" => Route::Connections,
            "token" => Route::Token,
            "register" => Route::Register,
            "revoke" => Route::Revoke,
            _ => Route::Unknown,
        });
    }
    // Its path may begin with that of the resource.
    if settings.callbacks.iter().any(|callback| callback == path) {
        return Some(Route::Callback);
    }
    if path == KEYS {
        return Some(Route::Keys);
    }
    let metadata = [(OAUTH_METADATA, Route::OauthMetadata), (OPENID_METADATA, Route::OpenidMetadata)];
    metadata.into_iter().find_map(|(prefix, route)| {
        let suffix = path.strip_prefix(prefix)?;
        if is_metadata_suffix(suffix, settings) {
            return Some(route);
        }
        suffix.starts_with('/').then_some(Route::Unknown)
    })
}

/// Metadata is at the well-known path itself (RFC 8414, section 3). Some clients append the path of the resource.
fn is_metadata_suffix(suffix: &str, settings: &Settings) -> bool {
    let is_path_of = |uri: &str| Uri::parse(uri).is_some_and(|uri| uri.rest == suffix);
    matches!(suffix, "" | "/")
        || is_path_of(&settings.issuer)
        || settings.audiences.iter().any(|uri| is_path_of(uri))
}

impl Route {
    /// The methods that it has.
    const fn methods(self) -> &'static str {
        match self {
            Self::Authorize | Self::Callback | Self::Keys | Self::OauthMetadata | Self::OpenidMetadata => {
                "GET"
            }
            Self::Consent | Self::Token | Self::Register | Self::Revoke => "POST",
            Self::Connections => "GET, POST, DELETE",
            Self::Unknown => "",
        }
    }

    /// Whether pages of other origins may use it. What the browser shows or decides is not for them.
    const fn is_for_pages(self) -> bool {
        !matches!(self, Self::Authorize | Self::Callback | Self::Consent | Self::Connections | Self::Unknown)
    }

    const fn purpose(self) -> Purpose {
        match self {
            Self::Authorize | Self::Callback | Self::Consent | Self::Connections => Purpose::Login,
            Self::Token | Self::Revoke => Purpose::Token,
            Self::Register => Purpose::Register,
            Self::Keys | Self::OauthMetadata | Self::OpenidMetadata | Self::Unknown => Purpose::Metadata,
        }
    }
}

/// The response to a request.
pub(crate) async fn respond<B>(server: &AuthServer, request: Request<B>, peer: IpAddr) -> Response<Bytes>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let route = route(head.uri.path(), &server.settings).unwrap_or(Route::Unknown);
    // Only browsers say that they show pages.
    let shows_pages = !route.is_for_pages() && accepts(&head.headers, "text/html");
    let reads_json = route.is_for_pages() && accepts(&head.headers, "application/json");
    let is_of_page = route.is_for_pages() && head.headers.contains_key(header::ORIGIN);
    let response = respond_to(server, route, head, body, peer).await;
    let mut response = match () {
        () if shows_pages => readable(response),
        () if reads_json => error::described(response),
        () => response,
    };
    // A page sees no response without that, also none that tells it to wait.
    if is_of_page {
        cors::allow(&mut response);
    }
    response
}

/// Whether a client names a media type that it accepts.
fn accepts(headers: &HeaderMap, type_: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split([',', ';'])).any(|part| part.trim().eq_ignore_ascii_case(type_))
}

async fn respond_to<B>(
    server: &AuthServer,
    route: Route,
    head: Parts,
    body: B,
    peer: IpAddr,
) -> Response<Bytes>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if route == Route::Unknown {
        return response::text(StatusCode::NOT_FOUND, "404 page not found");
    }
    if route.is_for_pages() && cors::is_preflight(&head.method, &head.headers) {
        return cors::preflight(route.methods());
    }
    let is_head = head.method == Method::HEAD && route.methods() == "GET" && route.is_for_pages();
    if !route.methods().split(", ").any(|method| method == head.method.as_str()) && !is_head {
        return response::method_not_allowed(route.methods());
    }
    if !server.rates.admits_peer(route.purpose(), peer, &server.clock) {
        return response::wait(StatusCode::TOO_MANY_REQUESTS, "rate limit exceeded, retry later");
    }
    if head.uri.query().is_some_and(|query| query.len() > limits::QUERY) {
        return response::text(StatusCode::URI_TOO_LONG, "the query is too long");
    }
    let is_small = body.size_hint().upper().is_some_and(|length| length <= limits::SMALL_BODY);
    let place = if is_small { None } else { server.bodies.take(peer) };
    if !is_small && place.is_none() {
        return response::wait(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many large requests arrive, retry later",
        );
    }
    let body = match timeout(limits::BODY_TIME, Limited::new(body, limits::BODY).collect()).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return response::text(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"),
        Err(_) => return response::text(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive"),
    };
    let arrived = Arrived {
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
        body: body.to_bytes(),
        peer,
    };
    let mut response = server.endpoint(route, &head.method, arrived).await;
    if is_head {
        *response.body_mut() = Bytes::new();
    }
    response
}

/// A request, read to its end.
pub(crate) struct Arrived<'a> {
    query: &'a str,
    headers: &'a HeaderMap,
    body: Bytes,
    peer: IpAddr,
}

impl Arrived<'_> {
    /// Whether the body has this media type.
    fn is_type(&self, wanted: &str) -> bool {
        let type_ = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let type_ = type_.and_then(|value| value.split(';').next()).unwrap_or_default();
        type_.trim().eq_ignore_ascii_case(wanted)
    }

    /// The token that it is authenticated with (RFC 6750, section 2.1).
    fn bearer(&self) -> Option<&str> {
        let value = self.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    }

    /// The form in the body.
    fn form(&self) -> Option<Parameters> {
        self.is_type("application/x-www-form-urlencoded").then(|| Parameters::parse(&self.body))
    }
}

impl AuthServer {
    async fn endpoint(&self, route: Route, method: &Method, request: Arrived<'_>) -> Response<Bytes> {
        match route {
            Route::Connections if request.bearer().is_some() || method == Method::DELETE => {
                let token = request.bearer().unwrap_or_default();
                self.connections_api(method, &request, token).await
            }
            Route::Authorize | Route::Callback | Route::Consent | Route::Connections => {
                self.login(route, method, request).await
            }
            Route::Token => self.token(&request).await,
            Route::Register => self.register(&request).await,
            Route::Revoke => self.revoke(&request).await,
            Route::Keys => response::document(&self.settings.keys.published()),
            Route::OauthMetadata => response::document(&self.oauth_metadata()),
            Route::OpenidMetadata => response::document(&self.openid_metadata()),
            Route::Unknown => response::text(StatusCode::NOT_FOUND, "404 page not found"),
        }
    }

    /// A step of a login, in a browser, which gets an id if it has none.
    async fn login(&self, route: Route, method: &Method, request: Arrived<'_>) -> Response<Bytes> {
        let is_secure = self.settings.is_secure();
        let browser = match Browser::of(&Cookies::parse(request.headers, is_secure), request.peer) {
            Ok(browser) => browser,
            Err(error) => return crate::error::OAuthError::from(error).response(),
        };
        let mut response = match route {
            Route::Authorize => self.authorize(request.query, &browser).await,
            Route::Callback => self.callback(request.query, &browser).await,
            Route::Connections if method == Method::GET => self.connections(request.query, &browser).await,
            Route::Connections => self.change_connection(&request, &browser).await,
            _ => self.consent(&request, &browser).await,
        };
        if browser.is_new
            && let Some(cookie) = set_browser(&browser.id, is_secure)
        {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}
