//! All configured models behind one call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;

use super::anthropic;
use super::api::{Api, Reader, RequestTarget};
use super::keys::{Key, Secret};
use super::replay::Player;
use super::settings::{Kind, ModelError, ModelSettings, Provider, Settings};
use crate::model::catalog::builtin::{ModelFacts, look_up};
use crate::model::replay::record::{Recorder, Tape};
use crate::model::request::request_cache::RequestCache;
use crate::model::request::sampling::left_out;
use crate::model::response_cache::{Cache, Key as CacheKey, deltas};
use crate::model::stream::assembly::CallIds;
use crate::model::stream::fault::{OUT_OF_QUOTA, Secrets, is_secret_header};
use crate::model::stream::http::{Clients, Exchange, hand_on};
use crate::model::stream::timeouts::Patience;
use crate::sync::lock;
use crate::types::model::{Delta, FaultKind, ModelFault, ModelRef, ModelReply, ModelRequest, StopReason};
use crate::types::thinking::Thinking;
use crate::types::usage::{ModelSnapshot, Price};

/// The header with the version of the Anthropic API.
const VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");
/// Its value if the configuration sets none.
const DEFAULT_VERSION: &str = "2023-06-01";
/// From this version on, a request with `temperature`, `top_p` or `top_k` is refused with status 400
/// (platform.claude.com, "Versions", 2026-11).
const VERSION_WITHOUT_SAMPLING: &str = "2026-10-21";

/// All configured models. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Models {
    inner: Arc<Inner>,
}

struct Inner {
    ways: BTreeMap<String, Backend>,
    models: BTreeMap<String, ModelFacts>,
    /// Unknown models about which users received a notice.
    strangers: Mutex<BTreeSet<String>>,
    /// Models about which users received a notice that they do not think.
    unthinking: Mutex<BTreeSet<String>>,
    /// Notices about omitted sampling settings that users received.
    unsampled: Mutex<BTreeSet<String>>,
    clients: Clients,
    written: RequestCache,
    cache: Option<Cache>,
    connect_timeout: Duration,
    patience: Patience,
}

/// The source of a provider's answers.
enum Backend {
    Http(Box<Address>),
    Replay(Player),
}

/// A provider on the network with checked settings.
struct Address {
    api: Api,
    url: Url,
    is_direct: bool,
    /// The provider is the API's vendor, not another server with the same API.
    is_vendor: bool,
    /// It stores the conversation.
    store: bool,
    key: Key,
    /// The last output of the key command, so that the command does not run for every call.
    printed: Mutex<Option<Secret>>,
    headers: HeaderMap,
    secrets: Secrets,
    recorder: Option<Arc<Recorder>>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models").field("providers", &self.providers()).finish_non_exhaustive()
    }
}

impl Models {
    /// Checks the settings. It opens, reads and connects to nothing yet.
    ///
    /// # Errors Settings that cannot work for any call.
    pub fn new(settings: Settings) -> Result<Models, ModelError> {
        let mut ways = BTreeMap::new();
        for (name, provider) in settings.providers {
            let way = Backend::new(&name, provider)?;
            ways.insert(name, way);
        }
        Ok(Models {
            inner: Arc::new(Inner {
                ways,
                models: settings.models,
                strangers: Mutex::default(),
                unthinking: Mutex::default(),
                unsampled: Mutex::default(),
                written: RequestCache::default(),
                cache: settings.cache.then(Cache::default),
                clients: Clients::new(settings.user_agent, settings.connect_timeout),
                connect_timeout: settings.connect_timeout,
                patience: Patience {
                    warn: settings.idle_warn,
                    silence: settings.idle_timeout,
                    content: settings.content_timeout,
                    attempt: settings.attempt_timeout,
                },
            }),
        })
    }

    /// Names of the configured providers, sorted.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        self.inner.ways.keys().cloned().collect()
    }

    /// Price of the model; `None` if unknown.
    #[must_use]
    pub fn price(&self, model: &ModelRef) -> Option<Price> {
        self.model(model).price
    }

    /// Limits and price for booking a call of the model.
    #[must_use]
    pub fn model_snapshot(&self, model: &ModelRef) -> ModelSnapshot {
        let known = self.model(model);
        ModelSnapshot {
            context_window: known.context_window,
            max_output_tokens: known.max_output_tokens,
            price: known.price,
        }
    }

    /// Properties of the model: from the configuration, else from the built-in table, else the defaults.
    #[must_use]
    pub fn model(&self, model: &ModelRef) -> ModelSettings {
        self.look_up(model).0
    }

    /// Whether the model receives pictures. Without a setting, the vendors' own models do; other models with
    /// Chat Completions do not.
    #[must_use]
    pub fn sees(&self, model: &ModelRef) -> bool {
        let hope = match self.inner.ways.get(&model.provider) {
            Some(Backend::Http(address)) => address.is_vendor || address.api != Api::OpenAiChat,
            Some(Backend::Replay(_)) | None => true,
        };
        self.model(model).vision.unwrap_or(hope)
    }

    /// Names of the models that the configuration has a table for.
    pub(super) fn configured(&self) -> impl Iterator<Item = String> + '_ {
        self.inner.models.keys().cloned()
    }

    /// The configured properties of a model.
    pub(super) fn given(&self, name: &str) -> Option<&ModelFacts> {
        self.inner.models.get(name)
    }

    /// The API of a provider on the network.
    pub(super) fn kind(&self, provider: &str) -> Option<Kind> {
        match self.inner.ways.get(provider)? {
            Backend::Http(address) => Some(address.api.kind()),
            Backend::Replay(_) => None,
        }
    }

    /// Providers that are the vendors of their models.
    pub(super) fn vendors(&self) -> Vec<(String, Kind)> {
        let vendor = |(name, way): (&String, &Backend)| match way {
            Backend::Http(address) if address.is_vendor => Some((name.clone(), address.api.kind())),
            Backend::Http(_) | Backend::Replay(_) => None,
        };
        self.inner.ways.iter().filter_map(vendor).collect()
    }

    /// Properties of the model, and whether the model is known at all.
    pub(super) fn look_up(&self, model: &ModelRef) -> (ModelSettings, bool) {
        let (kind, at_vendor) = match self.inner.ways.get(&model.provider) {
            Some(Backend::Http(address)) => (Some(address.api.kind()), address.is_vendor),
            Some(Backend::Replay(_)) | None => (None, false),
        };
        let given = self.inner.models.get(&model.to_string());
        let (mut settings, is_known) = look_up(kind, at_vendor, &model.model, given);
        if let Some(Backend::Http(address)) = self.inner.ways.get(&model.provider) {
            settings.sampling &= address.takes_sampling();
        }
        (settings, is_known)
    }

    /// The notice about an unknown model; once per model.
    fn stranger(&self, model: &ModelRef) -> Option<String> {
        let name = model.to_string();
        let is_new = lock(&self.inner.strangers).insert(name.clone());
        is_new.then(|| {
            format!(
                "nothing is known of the model {name}: its price is unknown, and that it takes tools and \
                 streams is assumed; [model.\"{name}\"] in the configuration says what is so"
            )
        })
    }

    /// The notice about a model that should think and is not known to; once per model.
    fn unthinking(&self, request: &ModelRequest, settings: &ModelSettings) -> Option<String> {
        let thinking = request.thinking.filter(|thinking| *thinking != Thinking::Off)?;
        let name = request.model.to_string();
        let told = &self.inner.unthinking;
        let is_new = !settings.thinking && lock(told).insert(name.clone());
        is_new.then(|| {
            format!(
                "thinking = {thinking} was not asked of the model {name}: it is not known to think; \
                 [model.\"{name}\"] thinking = true in the configuration says that it does"
            )
        })
    }

    /// The notice about a sampling setting that was not sent; each text once.
    fn unsampled(&self, api: Api, request: &ModelRequest, settings: &ModelSettings) -> Option<String> {
        let text = left_out(api, request, settings)?;
        let told = &self.inner.unsampled;
        lock(told).insert(text.clone()).then_some(text)
    }

    /// Builds the HTTP clients that the providers will need, so that the first call is faster. The call itself
    /// reports problems.
    pub async fn warm(&self) {
        let mut wanted = [false, false];
        for way in self.inner.ways.values() {
            if let Backend::Http(address) = way {
                wanted[usize::from(address.is_direct)] = true;
            }
        }
        for is_direct in [false, true] {
            if wanted[usize::from(is_direct)] {
                let _ = self.inner.clients.get(is_direct, false).await;
            }
        }
    }

    /// Streams one answer. Deltas go to `out` in order, one batch per read from the network; while `out` is
    /// full, it reads nothing. Returns the reply at the proper end of the stream, after its deltas; the deltas
    /// that arrived with the end are in the reply (`last`).
    ///
    /// Cancel-safe: dropping the future ends the request.
    ///
    /// # Errors One fault without secrets. Deltas may have come before it. `Interrupted` if `out` is closed.
    /// This function retries nothing.
    pub async fn call(
        &self,
        request: &ModelRequest,
        out: &mpsc::Sender<Vec<Delta>>,
    ) -> Result<ModelReply, ModelFault> {
        let name = &request.model.provider;
        match self.inner.ways.get(name) {
            Some(Backend::Http(address)) => self.ask(name, address, request, out).await,
            Some(Backend::Replay(player)) => player.play(name, request, out).await,
            None => {
                let known = self.providers().join(", ");
                let known = if known.is_empty() { "none".into() } else { known };
                let text = format!(
                    "no provider {name:?} is configured (there is: {known}): add [providers.{name}] or choose \
                     another model"
                );
                Err(ModelFault::new(FaultKind::Unconfigured, text))
            }
        }
    }

    async fn ask(
        &self,
        name: &str,
        address: &Address,
        request: &ModelRequest,
        out: &mpsc::Sender<Vec<Delta>>,
    ) -> Result<ModelReply, ModelFault> {
        let (settings, is_known) = self.look_up(&request.model);
        let mut secrets = address.secrets.clone();
        let mut secret = address.secret(name).await?;
        let interleaves = address.api == Api::Anthropic && anthropic::interleaves(request, &settings);
        let mut headers = address.headers(name, secret.as_ref(), interleaves, &mut secrets)?;
        let patience = &self.inner.patience;
        let patience = if settings.streaming { patience.clone() } else { patience.without_stream() };
        let client = self.inner.clients.get(address.is_direct, request.fresh_connection).await?;
        let exchange = |headers: &HeaderMap, previous| -> Result<Exchange<'_>, ModelFault> {
            let to = RequestTarget { is_vendor: address.is_vendor, store: address.store, previous };
            Ok(Exchange {
                client: client.clone(),
                provider: name,
                api: address.api,
                url: address.url.clone(),
                headers: headers.clone(),
                body: address.api.body(request, &settings, to, &self.inner.written)?,
                patience: patience.clone(),
                connect_timeout: self.inner.connect_timeout,
                is_direct: address.is_direct,
            })
        };
        // A conversation that the provider stores changes with each answer, so no request repeats an earlier
        // one.
        let mut known = match &self.inner.cache {
            Some(cache) if !address.store => {
                let to = RequestTarget { is_vendor: address.is_vendor, ..RequestTarget::default() };
                let body = address.api.body(request, &settings, to, &self.inner.written)?;
                let key = CacheKey::of(name, &address.url, &headers, &body);
                if let Some(reply) = cache.get(key, Instant::now()) {
                    hand_on(deltas(&reply), out).await?;
                    return Ok(reply);
                }
                Some((cache, key))
            }
            _ => None,
        };
        let reader = || Reader::new(address.api, CallIds::fresh());
        let tape = || address.recorder.is_some().then(|| Tape::new(request));
        let previous = request.previous_response_id.as_deref().filter(|_| address.store);
        let mut played = tape();
        let mut outcome = exchange(&headers, previous)?.run(reader(), out, &mut played).await;
        // The key may have been changed meanwhile: a different key is tried once.
        if outcome.as_ref().is_err_and(|fault| address.doubts_key(fault)) {
            address.forget_key();
            let fresh = address.secret(name).await;
            if let Ok(fresh) = fresh
                && fresh != secret
            {
                secret = fresh;
                // The cached answers of another account must not be used.
                known = None;
                headers = address.headers(name, secret.as_ref(), interleaves, &mut secrets)?;
                played = tape();
                outcome = exchange(&headers, previous)?.run(reader(), out, &mut played).await;
            }
        }
        // The request was refused before any output: sending the complete conversation instead costs nothing
        // extra.
        if previous.is_some() && outcome.as_ref().is_err_and(is_lost_conversation) {
            played = tape();
            outcome = exchange(&headers, None)?.run(reader(), out, &mut played).await;
            if let Ok(reply) = &mut outcome {
                reply
                    .notices
                    .push(format!("{name} had lost the conversation: the whole of it was sent again"));
            }
        }
        if let Ok(reply) = &mut outcome {
            mark_cut(reply, address.api.output_limit(request, &settings));
        }
        if let (Some((cache, key)), Ok(reply)) = (known, &outcome) {
            cache.put(key, reply, Instant::now());
        }
        let tape = played;
        if let Ok(reply) = &mut outcome {
            reply.notices.extend(self.unthinking(request, &settings));
            reply.notices.extend(self.unsampled(address.api, request, &settings));
        }
        // A self-hosted server may use its own model names.
        if let Ok(reply) = &mut outcome
            && !is_known
            && !address.is_direct
        {
            reply.notices.extend(self.stranger(&request.model));
        }
        if let (Some(recorder), Some(tape)) = (&address.recorder, tape)
            && let Err(why) = recorder.append(tape, &secrets).await
            && let Ok(reply) = &mut outcome
        {
            reply.notices.push(why);
        }
        outcome.map_err(|fault| secrets.scrub_fault(fault))
    }
}

impl Backend {
    fn new(name: &str, provider: Provider) -> Result<Self, ModelError> {
        let is_replay = provider.kind == Kind::Replay;
        match provider.cassette {
            Some(file) if is_replay => return Ok(Backend::Replay(Player::new(file))),
            None if is_replay => return Err(ModelError::NoCassette { provider: name.into() }),
            Some(_) => return Err(ModelError::MisplacedCassette { provider: name.into() }),
            None => {}
        }
        if provider.store && provider.kind != Kind::OpenAiResponses {
            return Err(ModelError::MisplacedStore { provider: name.into() });
        }
        let is_usable = |version: &str| provider.kind == Kind::Anthropic && is_date(version);
        if provider.api_version.as_deref().is_some_and(|version| !is_usable(version)) {
            return Err(ModelError::BadApiVersion { provider: name.into() });
        }
        let api = match provider.kind {
            Kind::Anthropic => Api::Anthropic,
            Kind::OpenAiChat => Api::OpenAiChat,
            Kind::OpenAiResponses => Api::OpenAiResponses,
            // A replay provider was created or refused above.
            Kind::Replay => return Err(ModelError::NoCassette { provider: name.into() }),
        };
        let bad_url = |why: String| ModelError::BadBaseUrl { provider: name.into(), why };
        let base = provider.base_url.as_deref().unwrap_or(api.vendor_url());
        let url = Url::parse(base).map_err(|error| bad_url(error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad_url("it has a ? or a #".into()));
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad_url(format!("{:?} is neither http nor https", url.scheme())));
        }
        let Some(host) = url.host_str() else { return Err(bad_url("it names no host".into())) };
        let endpoint = Url::parse(&api.endpoint(base)).map_err(|error| bad_url(error.to_string()))?;
        let is_direct = url.scheme() == "http" && is_loopback(host);
        let vendor = Url::parse(api.vendor_url()).ok();
        let is_vendor = vendor.is_some_and(|vendor| vendor.host_str() == Some(host));
        let mut secrets = Secrets::default();
        secrets.add_password(&url);
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
        if api == Api::Anthropic && !headers.contains_key(VERSION_HEADER) {
            let version = provider.api_version.as_deref().unwrap_or(DEFAULT_VERSION);
            let bad = || ModelError::BadApiVersion { provider: name.into() };
            headers.insert(VERSION_HEADER, version.parse().map_err(|_| bad())?);
        }
        let recorder = provider.record.map(|file| Arc::new(Recorder::new(file)));
        let address = Address {
            api,
            url: endpoint,
            is_direct,
            is_vendor,
            store: provider.store,
            key: provider.key,
            printed: Mutex::default(),
            headers,
            secrets,
            recorder,
        };
        Ok(Backend::Http(Box::new(address)))
    }
}

impl Address {
    /// The current key. The output of a key command is kept until the provider refuses it.
    async fn secret(&self, name: &str) -> Result<Option<Secret>, ModelFault> {
        if let Some(printed) = self.printed().clone() {
            return Ok(Some(printed));
        }
        let secret = self.key.read(name, self.api.key_variable()).await?;
        if matches!(self.key, Key::Command(_)) {
            self.printed().clone_from(&secret);
        }
        Ok(secret)
    }

    fn printed(&self) -> MutexGuard<'_, Option<Secret>> {
        lock(&self.printed)
    }

    fn forget_key(&self) {
        *self.printed() = None;
    }

    /// Whether the refusal may be caused by a changed key.
    fn doubts_key(&self, fault: &ModelFault) -> bool {
        match fault.kind {
            FaultKind::Unauthorized => true,
            // The key is right, and its account is empty. Part of an answer may have been streamed.
            FaultKind::Forbidden if fault.word.as_deref() == Some(OUT_OF_QUOTA) => false,
            FaultKind::Forbidden => matches!(self.key, Key::Command(_)),
            _ => false,
        }
    }

    /// Whether the API version accepts `temperature` and `top_p`.
    fn takes_sampling(&self) -> bool {
        let version = self.headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok());
        self.api != Api::Anthropic || version.is_none_or(|version| version < VERSION_WITHOUT_SAMPLING)
    }

    /// Builds the headers. Headers of the settings take precedence.
    fn headers(
        &self,
        name: &str,
        secret: Option<&Secret>,
        interleaves: bool,
        secrets: &mut Secrets,
    ) -> Result<HeaderMap, ModelFault> {
        let variable = self.api.key_variable();
        let own = match self.api {
            Api::Anthropic => HeaderName::from_static("x-api-key"),
            Api::OpenAiChat | Api::OpenAiResponses => reqwest::header::AUTHORIZATION,
        };
        if secret.is_none() && self.is_vendor && !self.headers.contains_key(&own) {
            let text = format!(
                "no key for {name}: set {variable}, or api_key_env, api_key_file or api_key_command of \
                 [providers.{name}]"
            );
            return Err(ModelFault::new(FaultKind::NoKey, text));
        }
        let mut headers = HeaderMap::new();
        if let Some(secret) = secret {
            secrets.add(secret.reveal());
            let text = match self.api {
                Api::Anthropic => secret.reveal().to_owned(),
                Api::OpenAiChat | Api::OpenAiResponses => format!("Bearer {}", secret.reveal()),
            };
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
        if interleaves {
            add_beta(&mut headers, anthropic::INTERLEAVED);
        }
        Ok(headers)
    }
}

/// An answer that used exactly its limit was cut there, even if the server reports it as complete.
fn mark_cut(reply: &mut ModelReply, limit: Option<u32>) {
    let is_whole = matches!(reply.stop_reason, StopReason::EndTurn | StopReason::ToolUse);
    if is_whole && limit.is_some_and(|limit| reply.usage.output_tokens == u64::from(limit)) {
        reply.stop_reason = StopReason::MaxTokens;
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

/// The answer that the request continues no longer exists.
fn is_lost_conversation(fault: &ModelFault) -> bool {
    // Servers with this API use different texts (vLLM: "Response with id … not found"). Only requests that
    // named an answer are checked.
    let says = |text: &str| text.contains("previous_response") || text.contains("Response with id");
    let is_named = says(&fault.message) || fault.word.as_deref().is_some_and(says);
    fault.kind == FaultKind::NotFound || (fault.kind == FaultKind::BadRequest && is_named)
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(provider: Provider) -> Result<Models, ModelError> {
        Models::new(Settings { providers: [("x".into(), provider)].into(), ..Settings::default() })
    }

    fn check(change: impl FnOnce(&mut Provider), word: Option<&str>) {
        let mut provider = Provider::new(Kind::OpenAiChat);
        change(&mut provider);
        let got = build(provider).err();
        assert_eq!(got.as_ref().map(ModelError::word), word, "{got:?}");
        if let Some(error) = got {
            assert!(error.to_string().contains("[providers.x]"), "{error}");
        }
    }

    #[test]
    fn invalid_provider_settings_are_refused_with_code() {
        check(|_| {}, None);
        check(|p| p.base_url = Some("127.0.0.1:11434".into()), Some("bad_base_url"));
        check(|p| p.base_url = Some("ftp://host".into()), Some("bad_base_url"));
        check(|p| p.base_url = Some("http://".into()), Some("bad_base_url"));
        check(|p| drop(p.headers.insert("a b".into(), "x".into())), Some("bad_header"));
        check(|p| drop(p.headers.insert("a".into(), "x\ny".into())), Some("bad_header"));
        check(|p| p.cassette = Some("f".into()), Some("misplaced_cassette"));
        check(|p| p.kind = Kind::Replay, Some("no_cassette"));
        check(|p| p.kind = Kind::OpenAiResponses, None);
        check(|p| p.store = true, Some("misplaced_store"));
        check(|p| p.api_version = Some("2026-10-21".into()), Some("bad_api_version"));
        for (version, word) in [
            ("2026-10-21", None),
            ("newest", Some("bad_api_version")),
            ("2026-10-21\n", Some("bad_api_version")),
            ("", Some("bad_api_version")),
        ] {
            let change = |p: &mut Provider| {
                *p = Provider { api_version: Some(version.into()), ..Provider::new(Kind::Anthropic) };
            };
            check(change, word);
        }
    }

    #[tokio::test]
    async fn unconfigured_provider_is_refused_with_advice() {
        let models = build(Provider::new(Kind::OpenAiChat)).unwrap();
        let (out, _in) = mpsc::channel(1);
        for (model, words) in [("y/m", "there is: x")] {
            let request = ModelRequest {
                model: model.parse().unwrap(),
                system: "".into(),
                messages: vec![],
                tools: [].into(),
                max_output_tokens: None,
                thinking: None,
                sampling: Default::default(),
                media: Default::default(),
                previous_response_id: None,
                fresh_connection: false,
                aside: false,
            };
            let fault = models.call(&request, &out).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unconfigured);
            assert!(fault.message.contains(words), "{}", fault.message);
        }
    }

    #[test]
    fn loopback_hosts_are_recognised_by_name_and_address() {
        for (host, expected) in
            [("localhost", true), ("127.0.0.2", true), ("[::1]", true), ("10.0.0.1", false), ("a.b", false)]
        {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
