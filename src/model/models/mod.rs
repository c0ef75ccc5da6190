//! All configured models behind one call.

mod call;
mod notices;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::sync::mpsc;

use crate::api_row::RequestTarget;
use crate::backend::{Address, Backend};
use crate::catalog::builtin::look_up;
use crate::http::{Clients, Exchange};
use crate::request::refused_tools::RefusedTools;
use crate::request::request_cache::RequestCache;
use crate::response_cache::ResponseCache;
use crate::settings::{MaxTokensField, ModelError, ModelFacts, ModelSettings, ProviderKind, Settings};
use crate::stream::timeouts::StreamTimeouts;
use base::sync::lock;
use types::model::{Delta, FaultKind, ModelFault, ModelRef, ModelReply, ModelRequest};
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
    /// Models whose server refused `stream_options`.
    without_stream_options: Mutex<BTreeSet<String>>,
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
                without_stream_options: Mutex::default(),
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
            Some(Backend::Http(address)) => address.is_vendor || address.api.row().sees_pictures,
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

    pub(super) fn kind(&self, provider: &str) -> Option<ProviderKind> {
        match self.inner.backends.get(provider)? {
            Backend::Http(address) => Some(address.api.row().kind),
            Backend::Replay(_) => None,
        }
    }

    pub(super) fn vendor_providers(&self) -> Vec<(String, ProviderKind)> {
        let vendor = |(name, backend): (&String, &Backend)| match backend {
            Backend::Http(address) if address.is_vendor => Some((name.clone(), address.api.row().kind)),
            Backend::Http(_) | Backend::Replay(_) => None,
        };
        self.inner.backends.iter().filter_map(vendor).collect()
    }

    /// Properties of the model, and whether the model is known at all.
    pub(super) fn look_up(&self, model: &ModelRef) -> (ModelSettings, bool) {
        let (kind, at_vendor) = match self.inner.backends.get(&model.provider) {
            Some(Backend::Http(address)) => (Some(address.api.row().kind), address.is_vendor),
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
        if !address.api.row().has_max_tokens_fields {
            return None;
        }
        let learned = || lock(&self.inner.max_tokens_fields).get(&model.to_string()).copied();
        let usual = match address.is_vendor {
            true => MaxTokensField::MaxCompletionTokens,
            false => MaxTokensField::MaxTokens,
        };
        Some(address.max_tokens_field.or_else(learned).unwrap_or(usual))
    }

    fn refuses_stream_options(&self, model: &ModelRef) -> bool {
        lock(&self.inner.without_stream_options).contains(&model.to_string())
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
                let refuses_stream_options = self.refuses_stream_options(&request.model);
                let to =
                    RequestTarget { is_vendor, max_tokens_field, refuses_stream_options, store, previous };
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
}
