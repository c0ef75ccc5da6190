//! The source of the answers of a configured provider: its address, key and headers, or a recording.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::keys::{KeySource, Secret};
use super::replay::Player;
use super::settings::{Api, MaxTokensField, ModelError, Provider};
use crate::api_row::{ApiRow, KeyHeader};
use crate::replay::record::Recorder;
use crate::stream::fault::{OUT_OF_QUOTA, Secrets, is_secret_header};
use base::sync::lock;
use types::model::{FaultKind, ModelFault};

/// Hosts of Azure OpenAI.
const AZURE_HOSTS: [&str; 3] =
    [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];

/// Domains that exist inside private networks only (RFC 6762, RFC 8375, and usual ones). Names without a dot are
/// those of containers and of the local network.
const PRIVATE_DOMAINS: [&str; 6] = [".localhost", ".local", ".lan", ".internal", ".home.arpa", ".ts.net"];

/// Default time until the first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// The same for loopback and private addresses.
const LOCAL_FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The source of a provider's answers.
pub(super) enum Backend {
    Http(Box<Address>),
    Replay(Player),
}

/// A provider on the network with checked settings.
pub(super) struct Address {
    pub(super) api: Api,
    pub(super) url: Url,
    pub(super) is_direct: bool,
    /// Whether the provider is the API's vendor, not another server with the same API.
    pub(super) is_vendor: bool,
    /// Whether the server is Azure, which takes a key in a header of its own.
    pub(super) is_azure: bool,
    /// Maximum time until the first byte of an answer.
    pub(super) first_byte: Duration,
    /// The configured field of the output limit.
    pub(super) max_tokens_field: Option<MaxTokensField>,
    /// Whether the provider stores the conversation.
    pub(super) store: bool,
    pub(super) key: KeySource,
    /// The last output of the key command, so that the command does not run for every call.
    pub(super) printed: Mutex<Option<Secret>>,
    pub(super) headers: HeaderMap,
    pub(super) secrets: Secrets,
    pub(super) recorder: Option<Arc<Recorder>>,
}

impl Backend {
    pub(super) fn new(name: &str, provider: Provider) -> Result<Self, ModelError> {
        let key_source = provider.key();
        let Some(api) = Api::of_kind(provider.kind) else {
            let cassette =
                provider.cassette.ok_or_else(|| ModelError::NoCassette { provider: name.into() })?;
            return Ok(Backend::Replay(Player::new(cassette)));
        };
        let row = api.row();
        if provider.cassette.is_some() {
            return Err(ModelError::MisplacedCassette { provider: name.into() });
        }
        if provider.store && !row.stores_conversations {
            return Err(ModelError::MisplacedStore { provider: name.into() });
        }
        let is_usable = |version: &str| row.version.is_some() && is_date(version);
        if provider.api_version.as_deref().is_some_and(|version| !is_usable(version)) {
            return Err(ModelError::BadApiVersion { provider: name.into() });
        }
        let bad_url = |why: String| ModelError::BadBaseUrl { provider: name.into(), why };
        let base = provider.base_url.as_deref().unwrap_or(row.vendor.base_url);
        let url = Url::parse(base).map_err(|error| bad_url(error.to_string()))?;
        if url.fragment().is_some() {
            return Err(bad_url("it has a #".into()));
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad_url(format!("{:?} is neither http nor https", url.scheme())));
        }
        let Some(host) = url.host_str() else { return Err(bad_url("it names no host".into())) };
        if provider.max_tokens_field.is_some() && !row.has_max_tokens_fields {
            return Err(ModelError::MisplacedMaxTokensField { provider: name.into() });
        }
        if provider.first_byte_timeout.is_some_and(|timeout| timeout.0.is_zero()) {
            return Err(ModelError::BadFirstByteTimeout { provider: name.into() });
        }
        let mut endpoint = api.endpoint(&url);
        if !provider.query.is_empty() {
            endpoint.query_pairs_mut().extend_pairs(&provider.query);
        }
        let is_direct = url.scheme() == "http" && is_loopback(host);
        let vendor = Url::parse(row.vendor.base_url).ok();
        let is_vendor = vendor.is_some_and(|vendor| vendor.host_str() == Some(host));
        let mut secrets = Secrets::default();
        secrets.add_password(&url);
        for (parameter, value) in endpoint.query_pairs() {
            if is_secret_header(&parameter) {
                secrets.add(&value);
            }
        }
        let headers = configured_headers(name, &provider, row, &mut secrets)?;
        let recorder = provider.record.map(|file| Arc::new(Recorder::new(file)));
        let address = Address {
            api,
            url: endpoint,
            is_direct,
            is_vendor,
            is_azure: AZURE_HOSTS.iter().any(|suffix| host.ends_with(suffix)),
            first_byte: provider
                .first_byte_timeout
                .map_or_else(|| first_byte_timeout(host), |timeout| timeout.0),
            max_tokens_field: provider.max_tokens_field,
            store: provider.store,
            key: key_source,
            printed: Mutex::default(),
            headers,
            secrets,
            recorder,
        };
        Ok(Backend::Http(Box::new(address)))
    }
}

/// The headers of every request. Adds the secret ones to `secrets`.
fn configured_headers(
    name: &str,
    provider: &Provider,
    row: &ApiRow,
    secrets: &mut Secrets,
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    for (header, value) in &provider.headers {
        let bad = || ModelError::BadHeader { provider: name.into(), header: header.clone() };
        let key: HeaderName = header.parse().map_err(|_| bad())?;
        let mut parsed: HeaderValue = value.parse().map_err(|_| bad())?;
        if is_secret_header(header) {
            parsed.set_sensitive(true);
            secrets.add(value);
        }
        headers.insert(key, parsed);
    }
    if let Some(version) = &row.version
        && !headers.contains_key(version.name)
    {
        let value = provider.api_version.as_deref().unwrap_or(version.default);
        let bad = || ModelError::BadApiVersion { provider: name.into() };
        headers.insert(version.name, value.parse().map_err(|_| bad())?);
    }
    Ok(headers)
}

impl Address {
    /// The current key. The output of a key command is kept until the provider refuses it.
    pub(super) async fn secret(&self, name: &str) -> Result<Option<Secret>, ModelFault> {
        if let Some(printed) = self.command_secret().clone() {
            return Ok(Some(printed));
        }
        let secret = self.key.read(name, self.api.row().vendor.key_variable).await?;
        if matches!(self.key, KeySource::Command(_)) {
            self.command_secret().clone_from(&secret);
        }
        Ok(secret)
    }

    pub(super) fn command_secret(&self) -> MutexGuard<'_, Option<Secret>> {
        lock(&self.printed)
    }

    pub(super) fn forget_key(&self) {
        *self.command_secret() = None;
    }

    /// Whether the refusal may be caused by a changed key.
    pub(super) fn doubts_key(&self, fault: &ModelFault) -> bool {
        match fault.kind {
            FaultKind::Unauthorized => true,
            // The key is valid, but its account has no credit. A part of the answer may have been streamed already.
            FaultKind::Forbidden if fault.word.as_deref() == Some(OUT_OF_QUOTA) => false,
            FaultKind::Forbidden => matches!(self.key, KeySource::Command(_)),
            _ => false,
        }
    }

    /// Whether the API version accepts `temperature` and `top_p`.
    pub(super) fn takes_sampling(&self) -> bool {
        self.api.row().version.as_ref().is_none_or(|version| {
            let value = self.headers.get(version.name).and_then(|value| value.to_str().ok());
            value.is_none_or(|value| value < version.without_sampling)
        })
    }

    /// Builds the headers. Headers of the settings take precedence.
    pub(super) fn headers(
        &self,
        name: &str,
        secret: Option<&Secret>,
        beta: Option<&'static str>,
        secrets: &mut Secrets,
    ) -> Result<HeaderMap, ModelFault> {
        let variable = self.api.row().vendor.key_variable;
        // A token of Entra ID is a JSON Web Token, and Azure takes it as other servers take a key.
        let is_azure_key = self.is_azure && secret.is_some_and(|secret| !secret.reveal().starts_with("eyJ"));
        let (own, scheme) = match &self.api.row().key {
            KeyHeader::Named(header) => (HeaderName::from_static(header), ""),
            KeyHeader::Bearer if is_azure_key => (HeaderName::from_static("api-key"), ""),
            KeyHeader::Bearer => (AUTHORIZATION, "Bearer "),
        };
        if secret.is_none() && self.is_vendor && !self.headers.contains_key(&own) {
            let text = format!(
                "no key for {name}: set {variable}, run `agentctl login {name}`, or set api_key_env, api_key_file or \
                 api_key_command of [providers.{name}]"
            );
            return Err(ModelFault::new(FaultKind::NoKey, text));
        }
        let mut headers = HeaderMap::new();
        if let Some(secret) = secret {
            secrets.add(secret.reveal());
            let text = format!("{scheme}{}", secret.reveal());
            let mut value = HeaderValue::try_from(text).map_err(|_| {
                let text = format!(
                    "the key of [providers.{name}] holds characters that no key has (line breaks?): check where \
                     it comes from"
                );
                ModelFault::new(FaultKind::NoKey, text)
            })?;
            value.set_sensitive(true);
            headers.insert(own, value);
        }
        headers.extend(self.headers.clone());
        if let Some(beta) = beta {
            add_beta(&mut headers, beta);
        }
        Ok(headers)
    }
}

/// Whether the text has the form `2023-06-01`.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Adds a value to the header `anthropic-beta`.
fn add_beta(headers: &mut HeaderMap, word: &'static str) {
    let name = HeaderName::from_static("anthropic-beta");
    let known = headers.get(&name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let all = match known {
        "" => word.to_owned(),
        known if known.split(',').any(|other| other.trim() == word) => return,
        known => format!("{known},{word}"),
    };
    // Values that are valid separately are valid together.
    if let Ok(value) = HeaderValue::try_from(all) {
        headers.insert(name, value);
    }
}

pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost" || address(host).is_some_and(|ip| ip.is_loopback())
}

/// The default for the time until the first byte. A local server may load the model or work on other requests first.
pub(super) fn first_byte_timeout(host: &str) -> Duration {
    if is_loopback(host) || is_private(host) { LOCAL_FIRST_BYTE_TIMEOUT } else { FIRST_BYTE_TIMEOUT }
}

/// Whether the host is an address or a name of a private network.
fn is_private(host: &str) -> bool {
    let is_v4 = |ip: Ipv4Addr| {
        let [first, second, ..] = ip.octets();
        // Shared addresses (RFC 6598) are those of overlay networks.
        ip.is_private() || ip.is_link_local() || (first == 100 && (64..128).contains(&second))
    };
    match address(host) {
        Some(IpAddr::V4(ip)) => is_v4(ip),
        Some(IpAddr::V6(ip)) => {
            ip.is_unique_local() || ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some_and(is_v4)
        }
        None => !host.contains('.') || PRIVATE_DOMAINS.iter().any(|domain| host.ends_with(domain)),
    }
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
