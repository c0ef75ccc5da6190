//! Sends one request. It connects to an address that was judged in the same lookup, so that a name that
//! resolves differently the next time (DNS rebinding) gains nothing.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Url, redirect};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::address::{AddressRanges, is_public};
use crate::error::ToolError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response body.
pub(super) const MAX_BODY_BYTES: usize = 10 << 20;

/// The shared client of all fetches. It is created on first use, because loading the system's certificates is
/// slow. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct WebClient(Arc<OnceCell<reqwest::Client>>);

/// The response of a server.
pub(super) struct WebResponse {
    pub(super) status: u16,
    /// The target of a redirect as an absolute URL.
    pub(super) location: Option<Url>,
    /// Media type in lower case without parameters, and the charset that it names.
    pub(super) media: Option<String>,
    pub(super) charset: Option<String>,
    pub(super) body: Vec<u8>,
    /// Whether the body exceeded the limit.
    pub(super) is_cut: bool,
}

/// Parses a URL as users and models write it: http or https, no credentials.
pub(super) fn parse(text: &str) -> Result<Url, ToolError> {
    let bad = |code, text: String| Err(ToolError::new(code, text));
    if text.len() > 4096 || text.chars().any(char::is_control) {
        return bad("bad_url", "the url is longer than 4096 bytes or holds control characters".into());
    }
    let Ok(mut url) = Url::parse(text.trim()) else {
        return bad(
            "bad_url",
            format!("{text:?} is not a URL; write it in full, like https://example.org/page"),
        );
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return bad("bad_url", format!("only http and https can be fetched, not {:?}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return bad("url_with_credentials", "the url holds a user name or password; leave it out".into());
    }
    url.set_fragment(None);
    Ok(url)
}

/// The host without the brackets of IPv6.
pub(super) fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// Names that by convention mean this machine or its network, independent of DNS.
fn is_inner(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "localhost" | "local" | "internal" | "localdomain" | "lan" | "intranet" | "home" | "corp")
        || name.ends_with("home.arpa")
}

/// Refuses a host that may not be reached; returns whether the configuration allows it explicitly.
pub(super) async fn check_host(url: &Url, ranges: &AddressRanges) -> Result<bool, ToolError> {
    let host = host(url);
    let addresses = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => lookup(&host).await.map_err(|error| {
            if is_inner(&host) {
                return inner_host_error(&host);
            }
            ToolError::new("host_not_found", format!("the name {host} could not be resolved: {error}"))
                .with(json!({ "host": host }))
        })?,
    };
    let closed = addresses.iter().find(|address| !ranges.allow(**address));
    if let Some(address) = closed {
        return Err(not_public_error(&host, *address));
    }
    let is_added = addresses.iter().any(|address| !is_public(*address));
    if !is_added && is_inner(&host) {
        return Err(inner_host_error(&host));
    }
    Ok(is_added)
}

async fn lookup(host: &str) -> std::io::Result<Vec<IpAddr>> {
    let found = tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((host, 0))).await;
    let found: Vec<IpAddr> =
        found.map_err(|_| std::io::ErrorKind::TimedOut)??.map(|found| found.ip()).collect();
    if found.is_empty() { Err(std::io::ErrorKind::NotFound.into()) } else { Ok(found) }
}

fn not_public_error(host: &str, address: IpAddr) -> ToolError {
    ToolError::new(
        "address_not_public",
        format!(
            "{host} leads to {address}, which is no address of the public Internet; \
             only [tools] web_allowed_private in the daemon's configuration allows such"
        ),
    )
    .with(json!({ "host": host, "address": address.to_string() }))
}

fn inner_host_error(host: &str) -> ToolError {
    ToolError::new(
        "address_not_public",
        format!("{host} is a name inside this network, not of the public Internet"),
    )
    .with(json!({ "host": host }))
}

/// Resolves names for the client: all addresses of a name must be allowed, otherwise the lookup fails.
struct GuardedResolver(AddressRanges);

/// An address that is not allowed.
#[derive(Debug, thiserror::Error)]
#[error("{0} leads to {1}")]
struct BlockedAddress(String, IpAddr);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (ranges, host) = (self.0.clone(), name.as_str().to_owned());
        Box::pin(async move {
            let found = lookup(&host).await?;
            if let Some(closed) = found.iter().find(|address| !ranges.allow(**address)) {
                return Err(BlockedAddress(host, *closed).into());
            }
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

impl WebClient {
    async fn get(&self, ranges: &AddressRanges, proxy: Option<&str>) -> Result<reqwest::Client, ToolError> {
        let build = || async {
            let (guard, proxy) = (GuardedResolver(ranges.clone()), proxy.map(str::to_owned));
            let build = move || {
                // This fails if another part of the program has installed a TLS provider already, which works
                // as well.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let builder = reqwest::Client::builder()
                    .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
                    .connect_timeout(CONNECT_TIMEOUT)
                    .redirect(redirect::Policy::none())
                    .referer(false)
                    // A proxy of the environment would resolve names by itself.
                    .no_proxy()
                    .pool_max_idle_per_host(1)
                    .pool_idle_timeout(Duration::from_secs(30));
                match proxy {
                    // With a proxy, the proxy resolves names; its own name is not judged like a page's.
                    Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy)?).build(),
                    None => builder.dns_resolver(Arc::new(guard)).build(),
                }
            };
            let built = tokio::task::spawn_blocking(build).await;
            let failed = |why: String| {
                ToolError::new("fetch_failed", format!("the HTTP client could not be set up: {why}"))
            };
            built
                .map_err(|error| failed(error.to_string()))?
                .map_err(|error| failed(innermost_message(&error)))
        };
        self.0.get_or_try_init(build).await.cloned()
    }

    /// Requests one page; `received` shows the bytes of its body meanwhile. The host was judged; the address of the connection is judged again. Cancel-safe:
    /// dropping the future closes the connection.
    pub(super) async fn request_page(
        &self,
        url: &Url,
        ranges: &AddressRanges,
        proxy: Option<&str>,
        received: &AtomicUsize,
    ) -> Result<WebResponse, ToolError> {
        let failed = |error: &reqwest::Error| {
            if let Some(BlockedAddress(host, address)) = find_closed(error) {
                return not_public_error(host, *address);
            }
            let hint = if error.is_connect() && proxy.is_none() {
                "; if this machine reaches the web by a proxy only, set [tools] web_proxy"
            } else {
                ""
            };
            ToolError::new(
                "fetch_failed",
                format!("{url} could not be fetched: {}{hint}", innermost_message(error)),
            )
            .with(json!({ "url": url.as_str() }))
        };
        let request = self.get(ranges, proxy).await?.get(url.clone()).header(
            ACCEPT,
            "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.1",
        );
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let status = response.status().as_u16();
        let location =
            header(LOCATION).filter(|_| (300..400).contains(&status)).and_then(|to| url.join(to).ok());
        let kind = header(CONTENT_TYPE).map(str::to_ascii_lowercase);
        let media = kind.as_deref().map(|kind| kind.split(';').next().unwrap_or("").trim().to_owned());
        let charset = kind.as_deref().and_then(|kind| {
            let value = kind.split(';').skip(1).find_map(|part| part.trim().strip_prefix("charset="))?;
            Some(value.trim_matches('"').to_owned())
        });
        // The request accepts no compression, so a compressed body is not decoded.
        if header(CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            return Err(ToolError::new(
                "fetch_failed",
                format!("{url} was sent compressed, which was not asked for"),
            ));
        }
        let (mut body, mut is_cut) = (Vec::new(), false);
        if location.is_none() {
            while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
                let room = MAX_BODY_BYTES - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                received.store(body.len(), Relaxed);
                if chunk.len() > room {
                    is_cut = true;
                    break;
                }
            }
        }
        Ok(WebResponse { status, location, media, charset, body, is_cut })
    }
}

fn find_closed(error: &reqwest::Error) -> Option<&BlockedAddress> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(closed) = error.downcast_ref::<BlockedAddress>() {
            return Some(closed);
        }
        source = error.source();
    }
    None
}

/// The innermost error is the most specific one.
fn innermost_message(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    if error.is_timeout() { "it took too long".into() } else { reason.to_string() }
}
