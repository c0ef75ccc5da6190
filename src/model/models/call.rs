//! One call of a model: the request, and what is sent again at once after a refusal.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use reqwest::Client;
use reqwest::header::HeaderMap;
use tokio::sync::mpsc;

use super::Models;
use crate::api::AnswerReader;
use crate::api_row::RequestTarget;
use crate::backend::Address;
use crate::http::Exchange;
use crate::keys::Secret;
use crate::replay::record::OpenRecording;
use crate::request::refused_tools::{MAX_REFUSALS, refused_tool, without};
use crate::response_cache::{ResponseCache, ResponseKey, deltas};
use crate::settings::{MaxTokensField, ModelSettings};
use crate::stream::assembly::CallIds;
use crate::stream::fault::{self, Secrets};
use crate::stream::timeouts::{StreamTimeouts, send_batch};
use crate::tool_schema::ChangedNames;
use base::sync::lock;
use types::model::{Delta, FaultKind, ModelFault, ModelRef, ModelReply, ModelRequest, StopReason};
use types::tool::ToolDefinition;

/// The result of one or more requests of a call.
type Outcome = Result<ModelReply, ModelFault>;

/// Words of an error about a field that the server does not know.
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

/// A call whose request may be sent several times.
struct PendingCall<'a> {
    models: &'a Models,
    name: &'a str,
    address: &'a Address,
    request: &'a ModelRequest,
    out: &'a mpsc::Sender<Vec<Delta>>,
    settings: ModelSettings,
    client: Client,
    timeouts: StreamTimeouts,
    changed_names: Arc<ChangedNames>,
    /// Value for the header of beta features.
    beta: Option<&'static str>,
    /// Texts that no fault may contain.
    secrets: Secrets,
    secret: Option<Secret>,
    headers: HeaderMap,
    /// The request without refused tools.
    offering: Cow<'a, ModelRequest>,
    /// Field of the output limit (Chat Completions).
    field: Option<MaxTokensField>,
    /// Whether the request does not ask for the use of a stream (Chat Completions).
    refuses_stream_options: bool,
    /// Id of the answer that the request continues.
    previous: Option<&'a str>,
    /// The recording of the last request.
    tape: Option<OpenRecording>,
    /// Whether the answer may be cached: not if the request differs from the one that was looked up.
    is_cacheable: bool,
}

impl Models {
    pub(super) async fn send_request(
        &self,
        name: &str,
        address: &Address,
        request: &ModelRequest,
        out: &mpsc::Sender<Vec<Delta>>,
    ) -> Outcome {
        let (settings, is_known) = self.look_up(&request.model);
        let (mut call, unfit) = self.prepare_call(name, address, request, out, settings).await?;
        let cached = call.cache_key()?;
        if let Some((cache, key)) = &cached
            && let Some(reply) = cache.get(*key, Instant::now())
        {
            send_batch(deltas(&reply), out).await?;
            return Ok(reply);
        }
        let outcome = call.send().await;
        let outcome = call.retry_with_changed_key(outcome).await;
        let outcome = call.retry_with_other_field(outcome).await;
        let outcome = call.retry_without_stream_options(outcome).await;
        let outcome = call.retry_without_refused_tools(outcome, unfit).await;
        let mut outcome = call.retry_with_whole_conversation(outcome).await;
        if let Ok(reply) = &mut outcome {
            call.complete(reply);
        }
        if let (Some((cache, key)), Ok(reply), true) = (cached, &outcome, call.is_cacheable) {
            cache.put(key, reply, Instant::now());
        }
        if let Ok(reply) = &mut outcome {
            reply.notices.extend(self.reported_unthinking(request, &call.settings));
            reply.notices.extend(self.reported_unsampled(address.api, request, &call.settings));
            // A self-hosted server may use its own model names.
            if !is_known && !address.is_direct {
                reply.notices.extend(self.unknown_model_notice(&request.model));
            }
        }
        if let (Some(recorder), Some(tape)) = (&address.recorder, call.tape)
            && let Err(why) = recorder.append(tape, &call.secrets).await
            && let Ok(reply) = &mut outcome
        {
            reply.notices.push(why);
        }
        outcome.map_err(|fault| call.secrets.scrub_fault(fault))
    }

    /// A call, and the problems of tools that cannot be offered.
    async fn prepare_call<'a>(
        &'a self,
        name: &'a str,
        address: &'a Address,
        request: &'a ModelRequest,
        out: &'a mpsc::Sender<Vec<Delta>>,
        settings: ModelSettings,
    ) -> Result<(PendingCall<'a>, Vec<String>), ModelFault> {
        let offering = self.inner.refused_tools.without_known(request);
        let (changed_names, unfit) =
            ChangedNames::from_tools(if settings.tools { &offering.tools } else { &[] });
        let mut secrets = address.secrets.clone();
        let secret = address.secret(name).await?;
        let beta = (address.api.row().beta)(request, &settings);
        let headers = address.headers(name, secret.as_ref(), beta, &mut secrets)?;
        let timeouts = &self.inner.timeouts;
        let timeouts = StreamTimeouts { first_byte: address.first_byte, ..timeouts.clone() };
        let timeouts = if settings.streaming { timeouts } else { timeouts.without_stream() };
        let call = PendingCall {
            models: self,
            name,
            address,
            request,
            out,
            settings,
            client: self.inner.clients.get(address.is_direct, request.fresh_connection).await?,
            timeouts,
            changed_names: Arc::new(changed_names),
            beta,
            secrets,
            secret,
            headers,
            offering,
            field: self.max_tokens_field(address, &request.model),
            refuses_stream_options: self.refuses_stream_options(&request.model),
            previous: request.previous_response_id.as_deref().filter(|_| address.store),
            tape: None,
            is_cacheable: true,
        };
        Ok((call, unfit))
    }
}

impl<'a> PendingCall<'a> {
    fn body(&self, to: RequestTarget<'_>) -> Result<Vec<u8>, ModelFault> {
        self.address.api.body(&self.offering, &self.settings, to, &self.models.inner.request_cache)
    }

    /// The target of a request that sends the whole conversation.
    fn target(&self) -> RequestTarget<'static> {
        RequestTarget {
            is_vendor: self.address.is_vendor,
            max_tokens_field: self.field,
            refuses_stream_options: self.refuses_stream_options,
            ..RequestTarget::default()
        }
    }

    /// The place of the answer in the cache. A conversation that the provider stores changes with each answer, so no
    /// request repeats an earlier one.
    fn cache_key(&self) -> Result<Option<(&'a ResponseCache, ResponseKey)>, ModelFault> {
        let Some(cache) = &self.models.inner.cache else { return Ok(None) };
        if self.address.store || self.request.is_repeated {
            return Ok(None);
        }
        let body = self.body(self.target())?;
        Ok(Some((cache, ResponseKey::from_request(self.name, &self.address.url, &self.headers, &body))))
    }

    async fn send(&mut self) -> Outcome {
        let body =
            self.body(RequestTarget { store: self.address.store, previous: self.previous, ..self.target() })?;
        let exchange = Exchange {
            client: self.client.clone(),
            provider: self.name,
            api: self.address.api,
            url: self.address.url.clone(),
            headers: self.headers.clone(),
            body,
            timeouts: self.timeouts.clone(),
            connect_timeout: self.models.inner.connect_timeout,
            is_direct: self.address.is_direct,
        };
        let ids = CallIds::unique().with_changed_names(Arc::clone(&self.changed_names));
        self.tape = self.address.recorder.is_some().then(|| OpenRecording::new(self.request));
        exchange.run(AnswerReader::new(self.address.api, ids), self.out, &mut self.tape).await
    }

    /// The key may have changed meanwhile, so try once with a different key.
    async fn retry_with_changed_key(&mut self, outcome: Outcome) -> Outcome {
        if !outcome.as_ref().is_err_and(|fault| self.address.doubts_key(fault)) {
            return outcome;
        }
        self.address.forget_key();
        match self.address.secret(self.name).await {
            Ok(fresh) if fresh != self.secret => self.secret = fresh,
            _ => return outcome,
        }
        // The cached answers of another account must not be used.
        self.is_cacheable = false;
        self.headers = self.address.headers(self.name, self.secret.as_ref(), self.beta, &mut self.secrets)?;
        self.send().await
    }

    /// If the server does not know the field of the output limit, nothing was generated, and the next calls use the
    /// right field at once.
    async fn retry_with_other_field(&mut self, outcome: Outcome) -> Outcome {
        let (Some(sent), Err(refusal)) = (self.field, &outcome) else { return outcome };
        if self.address.max_tokens_field.is_some() || !refuses_field(refusal, sent) {
            return outcome;
        }
        let other = sent.other();
        self.field = Some(other);
        let second = self.send().await;
        let is_bad = |fault: &ModelFault| fault.kind == FaultKind::BadRequest;
        if second.as_ref().is_err_and(|fault| is_bad(fault) && refuses_field(fault, other)) {
            self.field = Some(sent);
            return outcome;
        }
        if !second.as_ref().is_err_and(is_bad) {
            lock(&self.models.inner.max_tokens_fields).insert(self.request.model.to_string(), other);
        }
        second
    }

    /// Older servers with this API do not know `stream_options`. Without it the use of tokens is estimated.
    async fn retry_without_stream_options(&mut self, outcome: Outcome) -> Outcome {
        let is_sent = self.field.is_some() && self.settings.streaming && !self.refuses_stream_options;
        let is_refused = |fault: &ModelFault| {
            let text = fault.message.to_ascii_lowercase();
            fault.kind == FaultKind::BadRequest
                && names_word(&text, "stream_options")
                && REFUSALS.iter().any(|refusal| text.contains(refusal))
        };
        if !is_sent || !outcome.as_ref().is_err_and(is_refused) {
            return outcome;
        }
        self.refuses_stream_options = true;
        self.is_cacheable = false;
        let second = self.send().await;
        if second.is_ok() {
            lock(&self.models.inner.without_stream_options).insert(self.request.model.to_string());
        }
        second
    }

    /// One tool of a server must not make every request fail.
    async fn retry_without_refused_tools(&mut self, mut outcome: Outcome, unfit: Vec<String>) -> Outcome {
        let mut refusals: Vec<(ToolDefinition, String)> = Vec::new();
        while refusals.len() < MAX_REFUSALS
            && let Err(refusal) = &outcome
            && let Some(tool) = refused_tool(refusal, &self.offering).filter(|_| self.settings.tools)
        {
            let (tool, why) = (tool.clone(), self.secrets.scrub_fault(refusal.clone()).message);
            self.is_cacheable = false;
            self.offering = Cow::Owned(without(&self.offering, |other| other.name == tool.name));
            outcome = self.send().await;
            refusals.push((tool, why));
        }
        if let Ok(reply) = &mut outcome {
            for (tool, why) in &refusals {
                self.models.inner.refused_tools.add(&self.request.model, tool);
                reply.notices.push(format!(
                    "the tool {} is left out until its definition changes, because it was refused: {why}",
                    tool.name
                ));
            }
            reply.notices.extend(self.models.reported_unfit(unfit));
        }
        outcome
    }

    /// If the provider lost the conversation, the request was refused before any output: sending the complete
    /// conversation instead costs nothing extra.
    async fn retry_with_whole_conversation(&mut self, outcome: Outcome) -> Outcome {
        if self.previous.is_none() || !outcome.as_ref().is_err_and(is_lost_conversation) {
            return outcome;
        }
        self.previous = None;
        let mut outcome = self.send().await;
        if let Ok(reply) = &mut outcome {
            let notice = format!("{} had lost the conversation: the whole of it was sent again", self.name);
            reply.notices.push(notice);
        }
        outcome
    }

    /// Completes what the provider does not say: the models of nested calls, and whether the answer was cut.
    fn complete(&self, reply: &mut ModelReply) {
        for nested in &mut reply.nested {
            let model = match nested.model.as_str() {
                "" => self.request.model.clone(),
                model => ModelRef { provider: self.name.into(), model: fault::clean_text(model) },
            };
            (nested.model, nested.model_snapshot) = (model.to_string(), self.models.model_snapshot(&model));
        }
        mark_cut(reply, (self.address.api.row().output_limit)(self.request, &self.settings));
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
    let text = fault.message.to_ascii_lowercase();
    let is_about_size = fault.overflow.is_some() || text.contains("too large");
    fault.kind == FaultKind::BadRequest
        && !is_about_size
        && names_field(&text, sent)
        && (names_field(&text, sent.other()) || REFUSALS.iter().any(|refusal| text.contains(refusal)))
}

fn names_field(text: &str, field: MaxTokensField) -> bool {
    names_word(text, field.name())
}

/// Whether a text names the field as a whole word.
fn names_word(text: &str, field: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.split(|char| !is_part(char)).any(|word| word == field)
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
}
