//! One interface for the adapters of all APIs: writes requests and reads answers.

use super::settings::{Api, MaxTokensField, ModelSettings};
use crate::request::request_cache::RequestCache;
use crate::stream::assembly::CallIds;
use crate::stream::decode::{Decode, EventError};
use crate::stream::fault::{self, WireError};
use crate::stream::split_chars::decode_text;
use crate::stream::sse::Parser;
use crate::{anthropic, openai_chat, openai_responses};
use types::model::{Delta, ModelFault, ModelReply, ModelRequest};
use types::usage::Usage;

/// The target of a request, as far as the body depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestTarget<'a> {
    /// Whether the provider is the API's vendor, not another server with the same API.
    pub is_vendor: bool,
    /// The field of the output limit (Chat Completions).
    pub max_tokens_field: Option<MaxTokensField>,
    /// Whether the provider stores its answer, so that a later request can continue it.
    pub store: bool,
    /// Id of the answer that the request continues: all messages up to it are omitted.
    pub previous: Option<&'a str>,
}

impl Api {
    /// The body of a request. Repeated messages are copied from the cache `written`.
    pub(super) fn body(
        self,
        request: &ModelRequest,
        settings: &ModelSettings,
        to: RequestTarget<'_>,
        written: &RequestCache,
    ) -> Result<Vec<u8>, ModelFault> {
        match self {
            Api::Anthropic => anthropic::body(request, settings, written),
            Api::OpenAiChat => openai_chat::body(request, settings, to.is_vendor, to.max_tokens_field),
            Api::OpenAiResponses => openai_responses::body(request, settings, to.store, to.previous),
        }
        .map_err(|error| fault::invalid_answer(format_args!("the request could not be written ({error})")))
    }

    /// The output limit that a request sends, in tokens.
    pub(super) fn output_limit(self, request: &ModelRequest, settings: &ModelSettings) -> Option<u32> {
        match self {
            Api::Anthropic => Some(anthropic::output_limit(request, settings)),
            Api::OpenAiChat => openai_chat::output_limit(request, settings),
            Api::OpenAiResponses => openai_responses::output_limit(request, settings),
        }
    }
}

/// Reads one answer of any API from its bytes.
pub(super) struct AnswerReader {
    parser: Parser,
    decoder: Box<dyn Decode>,
    /// Whether at least one event arrived.
    has_events: bool,
    /// Whether at least one event was valid.
    has_begun: bool,
    /// The first bytes, to describe a body that is no event stream.
    head: Vec<u8>,
}

impl AnswerReader {
    const MAX_HEAD_BYTES: usize = 512;

    pub(super) fn new(api: Api, ids: CallIds) -> Self {
        let decoder: Box<dyn Decode> = match api {
            Api::Anthropic => Box::new(anthropic::Decoder::new(ids)),
            Api::OpenAiChat => Box::new(openai_chat::Decoder::new(ids)),
            Api::OpenAiResponses => Box::new(openai_responses::Decoder::new(ids)),
        };
        Self { parser: Parser::default(), decoder, has_events: false, has_begun: false, head: Vec::new() }
    }

    /// Parses the next bytes of an event stream. Their deltas are put into `out` even if they end in a fault.
    pub(super) fn feed(&mut self, chunk: &[u8], out: &mut Vec<Delta>) -> Result<(), ModelFault> {
        if !self.has_events {
            let room = Self::MAX_HEAD_BYTES - self.head.len();
            self.head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        let (decoder, has_events, has_begun) = (&mut self.decoder, &mut self.has_events, &mut self.has_begun);
        self.parser.feed(chunk, |event| {
            *has_events = true;
            if decoder.is_done() {
                return Ok(());
            }
            let data = decode_text(event.data);
            decoder.event(&data, out).map_err(|error| match error {
                EventError::Unreadable(error) => {
                    fault::error_event(&data).unwrap_or_else(|| match event.name {
                        b"error" => WireError::Text(data.trim().to_owned()).in_stream(),
                        _ => fault::unreadable_event(&error, *has_begun),
                    })
                }
                EventError::Fault(fault) => fault,
            })?;
            *has_begun = true;
            Ok(())
        })
    }

    /// Tokens that the provider reported so far; none if it has not.
    pub(super) fn usage(&self) -> Usage {
        self.decoder.usage()
    }

    /// Whether the answer is complete and no more bytes are to be read.
    pub(super) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// Whether the answer is complete. Token counts may follow but are not required.
    pub(super) fn may_end(&self) -> bool {
        self.decoder.may_end()
    }

    /// Handles the end of the stream.
    pub(super) fn end(mut self, out: &mut Vec<Delta>) -> Result<ModelReply, ModelFault> {
        if !self.decoder.is_done() {
            let decoder = &mut self.decoder;
            let mut had_tail = false;
            // An event without its blank line may be complete or truncated. If it cannot be parsed, it was
            // truncated.
            self.parser.finish(|event| {
                had_tail = true;
                let _ = decoder.event(&decode_text(event.data), out);
                Ok::<_, ModelFault>(())
            })?;
            self.has_events |= had_tail;
        }
        if self.decoder.may_end() && self.decoder.may_be_cut() {
            return Err(fault::missing_stop_reason());
        }
        if self.decoder.may_end() {
            return Ok(self.decoder.reply(out));
        }
        if self.has_events || looks_like_events(&self.head) {
            return Err(fault::interrupted_stream());
        }
        let got = fault::describe(&self.head);
        Err(fault::invalid_answer(format_args!(
            "expected an event stream, got: {got}; check base_url of the provider"
        )))
    }

    /// Reads a body with the complete answer.
    pub(super) fn whole(mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<ModelReply, ModelFault> {
        self.decoder.whole(&decode_text(body), out)?;
        Ok(self.decoder.reply(out))
    }
}

/// Whether a body with these first bytes may be an event stream. An empty body may be one, too.
fn looks_like_events(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    [&b"data"[..], b"event", b"id", b"retry", b":"]
        .iter()
        .any(|field| head.starts_with(field) || field.starts_with(head))
}
