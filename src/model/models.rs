//! All configured models behind one call.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;
use tokio::sync::mpsc;

use super::anthropic;
use super::api::{AnswerReader, RequestTarget};
use super::settings::{ModelError, ModelSettings, ProviderKind, Settings};
use crate::backend::{Address, Backend};
use crate::catalog::builtin::look_up;
use crate::http::{Clients, Exchange};
use crate::replay::record::OpenRecording;
use crate::request::refused_tools::{MAX_REFUSALS, RefusedTools, refused_tool, without};
use crate::request::request_cache::RequestCache;
use crate::request::sampling::omission_notice;
use crate::response_cache::{ResponseCache, ResponseKey, deltas};
use crate::settings::Api;
use crate::settings::{MaxTokensField, ModelFacts};
use crate::stream::assembly::CallIds;
use crate::stream::fault;
use crate::stream::timeouts::StreamTimeouts;
use crate::stream::timeouts::send_batch;
use crate::tool_schema::ChangedNames;
use base::sync::lock;
use types::model::{Delta, FaultKind, ModelFault, ModelRef, ModelReply, ModelRequest, StopReason};
use types::thinking::Thinking;
use types::tool::ToolDefinition;
use types::usage::{ModelSnapshot, Price};

/// All configured models. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Models {
    inner: Arc<Inner>,
}

struct Inner {
    backends: BTreeMap<String, Backend>,
    models: BTreeMap<String, ModelFacts>,
    /// Unknown models about which users received a notice.
    reported_unknown: Mutex<BTreeSet<String>>,
    /// Models about which users received a notice that they do not think.
    reported_unthinking: Mutex<BTreeSet<String>>,
    /// Notices about omitted sampling settings that users received.
    reported_unsampled: Mutex<BTreeSet<String>>,
    /// The field of the output limit that a server accepted after it refused the usual one, by model.
    max_tokens_fields: Mutex<BTreeMap<String, MaxTokensField>>,
    clients: Clients,
    /// Tools that providers refused.
    refused_tools: RefusedTools,
    /// Notices about tools that do not fit any provider, which users received.
    reported_unfit: Mutex<BTreeSet<String>>,
    request_cache: RequestCache,
    cache: Option<ResponseCache>,
    connect_timeout: Duration,
    timeouts: StreamTimeouts,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models").field("providers", &self.providers()).finish_non_exhaustive()
    }
}

impl Models {
    /// Checks the settings. It opens, reads and connects to nothing yet.
    ///
    /// # Errors
    /// Settings that cannot work for any call.
    pub fn new(settings: Settings) -> Result<Models, ModelError> {
        let mut backends = BTreeMap::new();
        for (name, provider) in settings.providers {
            let backend = Backend::new(&name, provider)?;
            backends.insert(name, backend);
        }
        Ok(Models {
            inner: Arc::new(Inner {
                backends,
                models: settings.models,
                reported_unknown: Mutex::default(),
                reported_unthinking: Mutex::default(),
                reported_unsampled: Mutex::default(),
                max_tokens_fields: Mutex::default(),
                refused_tools: RefusedTools::default(),
                reported_unfit: Mutex::default(),
                request_cache: RequestCache::default(),
                cache: settings.cache.then(ResponseCache::default),
                clients: Clients::new(settings.user_agent, settings.connect_timeout),
                connect_timeout: settings.connect_timeout,
                timeouts: StreamTimeouts {
                    warn: settings.retry.idle_warn.0,
                    // Each provider has its own limit.
                    first_byte: Duration::MAX,
                    silence: settings.retry.idle_timeout.0,
                    content: settings.retry.content_timeout.0,
                    attempt: settings.retry.attempt_timeout.0,
                },
            }),
        })
    }

    /// Names of the configured providers, sorted.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        self.inner.backends.keys().cloned().collect()
    }

    /// Variables of the environment from which providers take their keys, and which are not set; sorted.
    #[must_use]
    pub fn missing_key_variables(&self) -> Vec<String> {
        let missing = |backend: &Backend| match backend {
            Backend::Http(address) => address.key.missing_variable(),
            _ => None,
        };
        let mut names: Vec<String> = self.inner.backends.values().filter_map(missing).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Keys and header values of all providers, to be removed from texts. Key commands do not run; their last
    /// outputs are included.
    pub async fn secrets(&self) -> Vec<String> {
        let mut found = Vec::new();
        for backend in self.inner.backends.values() {
            let Backend::Http(address) = backend else { continue };
            let printed = address.command_secret().as_ref().map(|secret| secret.reveal().to_owned());
            found.extend(printed);
            found.extend(address.key.read_present().await);
            found.extend(address.headers.values().filter_map(|value| value.to_str().ok()).map(str::to_owned));
        }
        found
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
    pub fn accepts_images(&self, model: &ModelRef) -> bool {
        let is_likely = match self.inner.backends.get(&model.provider) {
            Some(Backend::Http(address)) => address.is_vendor || address.api != Api::OpenAiChat,
            Some(Backend::Replay(_)) | None => true,
        };
        self.model(model).vision.unwrap_or(is_likely)
    }

    /// The provider with this name.
    pub(super) fn backend(&self, name: &str) -> Option<&Backend> {
        self.inner.backends.get(name)
    }

    /// A request to a provider that is no model call.
    pub(super) async fn exchange<'a>(
        &self,
        name: &'a str,
        address: &Address,
        url: reqwest::Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Exchange<'a>, ModelFault> {
        Ok(Exchange {
            client: self.inner.clients.get(address.is_direct, false).await?,
            provider: name,
            api: address.api,
            url,
            headers,
            body,
            timeouts: self.inner.timeouts.clone(),
            connect_timeout: self.inner.connect_timeout,
            is_direct: address.is_direct,
        })
    }

    /// Names of the models that the configuration has a table for.
    pub(super) fn configured(&self) -> impl Iterator<Item = String> + '_ {
        self.inner.models.keys().cloned()
    }

    /// The configured properties of a model.
    pub(super) fn configured_facts(&self, name: &str) -> Option<&ModelFacts> {
        self.inner.models.get(name)
    }

    /// The kind of a provider.
    pub(super) fn kind(&self, provider: &str) -> Option<ProviderKind> {
        match self.inner.backends.get(provider)? {
            Backend::Http(address) => Some(address.api.kind()),
            Backend::Replay(_) => None,
        }
    }

    /// Providers that are the vendors of their models.
    pub(super) fn vendor_providers(&self) -> Vec<(String, ProviderKind)> {
        let vendor = |(name, backend): (&String, &Backend)| match backend {
            Backend::Http(address) if address.is_vendor => Some((name.clone(), address.api.kind())),
            Backend::Http(_) | Backend::Replay(_) => None,
        };
        self.inner.backends.iter().filter_map(vendor).collect()
    }

    /// Properties of the model, and whether the model is known at all.
    pub(super) fn look_up(&self, model: &ModelRef) -> (ModelSettings, bool) {
        let (kind, at_vendor) = match self.inner.backends.get(&model.provider) {
            Some(Backend::Http(address)) => (Some(address.api.kind()), address.is_vendor),
            Some(Backend::Replay(_)) | None => (None, false),
        };
        let configured = self.inner.models.get(&model.to_string());
        let (mut settings, is_known) = look_up(kind, at_vendor, &model.model, configured);
        if let Some(Backend::Http(address)) = self.inner.backends.get(&model.provider) {
            settings.sampling &= address.takes_sampling();
        }
        (settings, is_known)
    }

    /// The field for the output limit of a model (Chat Completions): the configured one, else the one that worked, else
    /// the newer one for the vendor alone.
    fn max_tokens_field(&self, address: &Address, model: &ModelRef) -> Option<MaxTokensField> {
        if address.api != Api::OpenAiChat {
            return None;
        }
        let learned = || lock(&self.inner.max_tokens_fields).get(&model.to_string()).copied();
        let usual = match address.is_vendor {
            true => MaxTokensField::MaxCompletionTokens,
            false => MaxTokensField::MaxTokens,
        };
        Some(address.max_tokens_field.or_else(learned).unwrap_or(usual))
    }

    /// The notice about an unknown model; once per model.
    fn unknown_model_notice(&self, model: &ModelRef) -> Option<String> {
        let name = model.to_string();
        let is_new = lock(&self.inner.reported_unknown).insert(name.clone());
        is_new.then(|| {
            format!(
                "the model {name} is not known: it has no price here, and is expected to take tools and to stream; \
                 describe it in [model.\"{name}\"] of the configuration"
            )
        })
    }

    /// The notice about a model that is asked to think but is not known to do so; once per model.
    fn reported_unthinking(&self, request: &ModelRequest, settings: &ModelSettings) -> Option<String> {
        let thinking = request.thinking.filter(|thinking| *thinking != Thinking::Off)?;
        let name = request.model.to_string();
        let reported = &self.inner.reported_unthinking;
        let is_new = !settings.thinking && lock(reported).insert(name.clone());
        is_new.then(|| {
            format!(
                "thinking = {thinking} was not asked of the model {name}: it is not known to think; \
                 [model.\"{name}\"] thinking = true in the configuration says that it does"
            )
        })
    }

    /// The notice about a sampling setting that was not sent; each text once.
    fn reported_unsampled(
        &self,
        api: Api,
        request: &ModelRequest,
        settings: &ModelSettings,
    ) -> Option<String> {
        let thinks = api == Api::Anthropic && anthropic::asks_to_think(request, settings);
        let text = omission_notice(api, thinks, request, settings)?;
        let reported = &self.inner.reported_unsampled;
        lock(reported).insert(text.clone()).then_some(text)
    }

    /// The notices about tools that cannot be offered; each text once.
    fn reported_unfit(&self, problems: Vec<String>) -> Vec<String> {
        let mut reported = lock(&self.inner.reported_unfit);
        problems.into_iter().filter(|problem| reported.insert(problem.clone())).collect()
    }

    /// Builds the HTTP clients that the providers will need, so that the first call is faster. The call itself
    /// reports problems.
    pub async fn prepare_clients(&self) {
        let mut wanted = [false, false];
        for backend in self.inner.backends.values() {
            if let Backend::Http(address) = backend {
                wanted[usize::from(address.is_direct)] = true;
            }
        }
        for is_direct in [false, true] {
            if wanted[usize::from(is_direct)] {
                let _ = self.inner.clients.get(is_direct, false).await;
            }
        }
    }

    /// Streams one answer. Deltas go to `out` in order, in batches of what arrives together; while `out` is
    /// full, it reads nothing. Returns the reply at the proper end of the stream, after its deltas; the deltas
    /// that arrived with the end are in the reply (`last`).
    ///
    /// Cancel-safe: dropping the future ends the request.
    ///
    /// # Errors
    /// One fault without secrets. Deltas may have come before it. `Interrupted` if `out` is closed. Nothing
    /// is retried after a wait. A request is sent again at once if its key was refused and has changed, or if
    /// the provider lost the conversation that it kept.
    pub async fn call(
        &self,
        request: &ModelRequest,
        out: &mpsc::Sender<Vec<Delta>>,
    ) -> Result<ModelReply, ModelFault> {
        let name = &request.model.provider;
        match self.inner.backends.get(name) {
            Some(Backend::Http(address)) => self.send_request(name, address, request, out).await,
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

    /// Bytes of the body that a request is sent with. A provider without a body, such as a recording, counts the
    /// request's own values.
    #[must_use]
    pub fn request_bytes(&self, request: &ModelRequest) -> u64 {
        let body = match self.inner.backends.get(&request.model.provider) {
            Some(Backend::Http(address)) => {
                let max_tokens_field = self.max_tokens_field(address, &request.model);
                let previous = request.previous_response_id.as_deref().filter(|_| address.store);
                let (is_vendor, store) = (address.is_vendor, address.store);
                let to = RequestTarget { is_vendor, max_tokens_field, store, previous };
                let settings = self.model(&request.model);
                address.api.body(request, &settings, to, &RequestCache::default()).ok()
            }
            Some(Backend::Replay(_)) | None => None,
        };
        let values = || {
            let values = (&*request.system, &*request.tools, &request.messages);
            serde_json::to_vec(&values).unwrap_or_default()
        };
        body.unwrap_or_else(values).len() as u64
    }

    async fn send_request(
        &self,
        name: &str,
        address: &Address,
        request: &ModelRequest,
        out: &mpsc::Sender<Vec<Delta>>,
    ) -> Result<ModelReply, ModelFault> {
        let (settings, is_known) = self.look_up(&request.model);
        let mut offering = self.inner.refused_tools.without_known(request);
        let (changed_names, unfit) =
            ChangedNames::from_tools(if settings.tools { &offering.tools } else { &[] });
        let changed_names = Arc::new(changed_names);
        let mut secrets = address.secrets.clone();
        let mut secret = address.secret(name).await?;
        let interleaves = address.api == Api::Anthropic && anthropic::sends_interleaved(request, &settings);
        let mut headers = address.headers(name, secret.as_ref(), interleaves, &mut secrets)?;
        let timeouts = &self.inner.timeouts;
        let timeouts = StreamTimeouts { first_byte: address.first_byte, ..timeouts.clone() };
        let timeouts = if settings.streaming { timeouts } else { timeouts.without_stream() };
        let client = self.inner.clients.get(address.is_direct, request.fresh_connection).await?;
        let mut field = self.max_tokens_field(address, &request.model);
        let exchange = |request: &ModelRequest,
                        headers: &HeaderMap,
                        previous,
                        field|
         -> Result<Exchange<'_>, ModelFault> {
            let is_vendor = address.is_vendor;
            let to = RequestTarget { is_vendor, max_tokens_field: field, store: address.store, previous };
            Ok(Exchange {
                client: client.clone(),
                provider: name,
                api: address.api,
                url: address.url.clone(),
                headers: headers.clone(),
                body: address.api.body(request, &settings, to, &self.inner.request_cache)?,
                timeouts: timeouts.clone(),
                connect_timeout: self.inner.connect_timeout,
                is_direct: address.is_direct,
            })
        };
        // A conversation that the provider stores changes with each answer, so no request repeats an earlier
        // one.
        let mut known = match &self.inner.cache {
            Some(cache) if !address.store && !request.is_repeated => {
                let is_vendor = address.is_vendor;
                let to = RequestTarget { is_vendor, max_tokens_field: field, ..RequestTarget::default() };
                let body = address.api.body(&offering, &settings, to, &self.inner.request_cache)?;
                let key = ResponseKey::from_request(name, &address.url, &headers, &body);
                if let Some(reply) = cache.get(key, Instant::now()) {
                    send_batch(deltas(&reply), out).await?;
                    return Ok(reply);
                }
                Some((cache, key))
            }
            _ => None,
        };
        let reader = || {
            let ids = CallIds::unique().with_changed_names(Arc::clone(&changed_names));
            AnswerReader::new(address.api, ids)
        };
        let tape = || address.recorder.is_some().then(|| OpenRecording::new(request));
        let previous = request.previous_response_id.as_deref().filter(|_| address.store);
        let mut played = tape();
        let mut outcome =
            exchange(&offering, &headers, previous, field)?.run(reader(), out, &mut played).await;
        // The key may have changed meanwhile, so try once with a different key.
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
                outcome =
                    exchange(&offering, &headers, previous, field)?.run(reader(), out, &mut played).await;
            }
        }
        // Nothing was generated, and the next calls use the right field at once.
        if let Some(sent) = field
            && let Err(refusal) = &outcome
            && address.max_tokens_field.is_none()
            && refuses_field(refusal, sent)
        {
            played = tape();
            let other = sent.other();
            let second =
                exchange(&offering, &headers, previous, Some(other))?.run(reader(), out, &mut played).await;
            if !second
                .as_ref()
                .is_err_and(|fault| fault.kind == FaultKind::BadRequest && refuses_field(fault, other))
            {
                field = Some(other);
                outcome = second;
                if !outcome.as_ref().is_err_and(|fault| fault.kind == FaultKind::BadRequest) {
                    lock(&self.inner.max_tokens_fields).insert(request.model.to_string(), other);
                }
            }
        }
        // One tool of a server must not make every request fail.
        let mut refusals: Vec<(ToolDefinition, String)> = Vec::new();
        while refusals.len() < MAX_REFUSALS
            && let Err(refusal) = &outcome
            && let Some(tool) = refused_tool(refusal, &offering).filter(|_| settings.tools)
        {
            let (tool, why) = (tool.clone(), secrets.scrub_fault(refusal.clone()).message);
            known = None;
            offering = Cow::Owned(without(&offering, |other| other.name == tool.name));
            played = tape();
            outcome = exchange(&offering, &headers, previous, field)?.run(reader(), out, &mut played).await;
            refusals.push((tool, why));
        }
        if let Ok(reply) = &mut outcome {
            for (tool, why) in &refusals {
                self.inner.refused_tools.add(&request.model, tool);
                reply.notices.push(format!(
                    "the tool {} is left out until its definition changes, because it was refused: {why}",
                    tool.name
                ));
            }
            reply.notices.extend(self.reported_unfit(unfit));
        }
        // The request was refused before any output: sending the complete conversation instead costs nothing
        // extra.
        if previous.is_some() && outcome.as_ref().is_err_and(is_lost_conversation) {
            played = tape();
            outcome = exchange(&offering, &headers, None, field)?.run(reader(), out, &mut played).await;
            if let Ok(reply) = &mut outcome {
                reply
                    .notices
                    .push(format!("{name} had lost the conversation: the whole of it was sent again"));
            }
        }
        if let Ok(reply) = &mut outcome {
            for nested in &mut reply.nested {
                let model = match nested.model.as_str() {
                    "" => request.model.clone(),
                    model => ModelRef { provider: name.into(), model: fault::clean_text(model) },
                };
                (nested.model, nested.model_snapshot) = (model.to_string(), self.model_snapshot(&model));
            }
            mark_cut(reply, address.api.output_limit(request, &settings));
        }
        if let (Some((cache, key)), Ok(reply)) = (known, &outcome) {
            cache.put(key, reply, Instant::now());
        }
        let tape = played;
        if let Ok(reply) = &mut outcome {
            reply.notices.extend(self.reported_unthinking(request, &settings));
            reply.notices.extend(self.reported_unsampled(address.api, request, &settings));
        }
        // A self-hosted server may use its own model names.
        if let Ok(reply) = &mut outcome
            && !is_known
            && !address.is_direct
        {
            reply.notices.extend(self.unknown_model_notice(&request.model));
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

/// An answer that used exactly its limit was cut there, even if the server reports it as complete.
fn mark_cut(reply: &mut ModelReply, limit: Option<u32>) {
    let is_whole = matches!(reply.stop_reason, StopReason::EndTurn | StopReason::ToolUse);
    if is_whole && limit.is_some_and(|limit| reply.usage.output_tokens == u64::from(limit)) {
        reply.stop_reason = StopReason::MaxTokens;
    }
}

/// Whether a request was refused because the server does not know the field of the output limit. A limit that is too
/// high is another error.
fn refuses_field(fault: &ModelFault, sent: MaxTokensField) -> bool {
    const REFUSALS: [&str; 12] = [
        "unsupported",
        "not supported",
        "unrecognized",
        "unrecognised",
        "unknown",
        "unexpected",
        "not permitted",
        "not allowed",
        "extra",
        "deprecated",
        "instead",
        "invalid param",
    ];
    let text = fault.message.to_ascii_lowercase();
    let is_about_size = fault.overflow.is_some() || text.contains("too large");
    fault.kind == FaultKind::BadRequest
        && !is_about_size
        && names_field(&text, sent)
        && (names_field(&text, sent.other()) || REFUSALS.iter().any(|refusal| text.contains(refusal)))
}

/// Whether a text names the field as a whole word.
fn names_field(text: &str, field: MaxTokensField) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.split(|char| !is_part(char)).any(|word| word == field.name())
}

/// Whether the answer that the request continues no longer exists.
fn is_lost_conversation(fault: &ModelFault) -> bool {
    // Servers with this API use different texts (vLLM: "Response with id … not found"). Only requests that
    // named an answer are checked.
    let says = |text: &str| text.contains("previous_response") || text.contains("Response with id");
    let is_named = says(&fault.message) || fault.word.as_deref().is_some_and(says);
    fault.kind == FaultKind::NotFound || (fault.kind == FaultKind::BadRequest && is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{first_byte_timeout, is_loopback};
    use crate::settings::Provider;
    use types::config_values::ConfigDuration;

    fn build(provider: Provider) -> Result<Models, ModelError> {
        Models::new(Settings { providers: [("x".into(), provider)].into(), ..Settings::default() })
    }

    fn check(change: impl FnOnce(&mut Provider), word: Option<&str>) {
        let mut provider = Provider::new(ProviderKind::OpenAiChat);
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
        check(|p| p.kind = ProviderKind::Replay, Some("no_cassette"));
        check(|p| p.kind = ProviderKind::OpenAiResponses, None);
        check(|p| p.store = true, Some("misplaced_store"));
        check(|p| p.base_url = Some("http://h/v1?a=b".into()), None);
        check(|p| p.base_url = Some("http://h/v1#b".into()), Some("bad_base_url"));
        check(|p| p.max_tokens_field = Some(MaxTokensField::MaxTokens), None);
        check(|p| p.first_byte_timeout = Some(ConfigDuration::from_secs(0)), Some("bad_first_byte_timeout"));
        let change = |p: &mut Provider| {
            *p = Provider {
                max_tokens_field: Some(MaxTokensField::MaxTokens),
                ..Provider::new(ProviderKind::Anthropic)
            };
        };
        check(change, Some("misplaced_max_tokens_field"));
        check(|p| p.api_version = Some("2026-10-21".into()), Some("bad_api_version"));
        for (version, word) in [
            ("2026-10-21", None),
            ("newest", Some("bad_api_version")),
            ("2026-10-21\n", Some("bad_api_version")),
            ("", Some("bad_api_version")),
        ] {
            let change = |p: &mut Provider| {
                *p = Provider { api_version: Some(version.into()), ..Provider::new(ProviderKind::Anthropic) };
            };
            check(change, word);
        }
    }

    #[tokio::test]
    async fn unconfigured_provider_is_refused_with_advice() {
        let models = build(Provider::new(ProviderKind::OpenAiChat)).unwrap();
        let (out, _in) = mpsc::channel(1);
        for (model, expected_text) in [("y/m", "there is: x")] {
            let request = ModelRequest { ..ModelRequest::new(model.parse().unwrap()) };
            let fault = models.call(&request, &out).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unconfigured);
            assert!(fault.message.contains(expected_text), "{}", fault.message);
        }
    }

    #[test]
    fn refused_output_limit_field_is_told_from_its_value() {
        let refuses = |text: &str, sent| refuses_field(&ModelFault::new(FaultKind::BadRequest, text), sent);
        for (text, sent) in [
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                MaxTokensField::MaxTokens,
            ),
            (
                "Unrecognized request argument supplied: max_completion_tokens",
                MaxTokensField::MaxCompletionTokens,
            ),
            ("Extra inputs are not permitted: max_completion_tokens", MaxTokensField::MaxCompletionTokens),
            (
                "max_completion_tokens: unknown field, expected one of max_tokens",
                MaxTokensField::MaxCompletionTokens,
            ),
            ("property 'max_completion_tokens' is unsupported", MaxTokensField::MaxCompletionTokens),
        ] {
            assert!(refuses(text, sent), "{text}");
        }
        for text in [
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
            "max_tokens must be at least 1",
            "'max_tokens' or 'max_completion_tokens' is too large: 4096.",
            "Unsupported parameter: 'max_tokens_to_sample'",
            "Unsupported parameter: 'temperature'",
        ] {
            assert!(!refuses(text, MaxTokensField::MaxTokens), "{text}");
        }
        let other = ModelFault::new(FaultKind::RateLimited, "max_tokens is not supported");
        assert!(!refuses_field(&other, MaxTokensField::MaxTokens));
    }

    #[test]
    fn query_of_address_and_settings_is_kept() {
        for (kind, base, path) in [
            (
                ProviderKind::OpenAiChat,
                "https://x.openai.azure.com/openai/deployments/d/?api-version=1",
                "/openai/deployments/d/chat/completions",
            ),
            (ProviderKind::OpenAiResponses, "https://h/v1?api-version=1", "/v1/responses"),
            (ProviderKind::Anthropic, "https://h/v1/?api-version=1", "/v1/messages"),
        ] {
            let provider = Provider {
                base_url: Some(base.into()),
                query: [("tenant".into(), "a b&c".into())].into(),
                ..Provider::new(kind)
            };
            let Backend::Http(address) = Backend::new("x", provider).expect("a backend") else {
                panic!("no address")
            };
            assert_eq!(
                (address.url.path(), address.url.query()),
                (path, Some("api-version=1&tenant=a+b%26c"))
            );
            let list = address.api.list_url(&address.url);
            assert!(list.path().ends_with("/models") && list.query() == address.url.query(), "{list}");
            assert_eq!(address.is_azure, base.contains("azure"));
        }
    }

    #[test]
    fn first_byte_timeout_depends_on_address() {
        for (host, minutes) in [
            ("localhost", 10),
            ("127.0.0.1", 10),
            ("[::1]", 10),
            ("10.1.2.3", 10),
            ("172.20.0.1", 10),
            ("192.168.1.5", 10),
            ("169.254.1.1", 10),
            ("100.100.1.1", 10),
            ("[fd00::1]", 10),
            ("[fe80::1]", 10),
            ("[::ffff:10.0.0.1]", 10),
            ("ollama", 10),
            ("gpu.local", 10),
            ("gpu.lan", 10),
            ("model.internal", 10),
            ("api.openai.com", 5),
            ("8.8.8.8", 5),
            ("172.32.0.1", 5),
            ("100.128.0.1", 5),
            ("[2001:4860::1]", 5),
        ] {
            assert_eq!(first_byte_timeout(host), Duration::from_secs(minutes * 60), "{host}");
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
