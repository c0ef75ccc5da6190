//! The APIs we speak over HTTP, and the one reader for what any of them answers.

use super::settings::{Kind, ModelSettings};
use crate::model::request::request_cache::RequestCache;
use crate::model::stream::assembly::CallIds;
use crate::model::stream::fault;
use crate::model::stream::sse::Parser;
use crate::model::{anthropic, openai_chat, openai_responses};
use crate::types::model::{Delta, ModelFault, ModelReply, ModelRequest};
use crate::types::usage::Usage;

/// An API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
}

/// Whom a request goes to, as far as its words depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestTarget<'a> {
    /// It is the vendor of the API, not somebody who speaks it too.
    pub is_vendor: bool,
    /// It is to keep what it says, so that it can be continued.
    pub store: bool,
    /// Its answer that the request continues: all up to there is left out.
    pub previous: Option<&'a str>,
}

impl Api {
    /// Its name in a cassette.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic",
            Api::OpenAiChat => "openai_chat",
            Api::OpenAiResponses => "openai_responses",
        }
    }

    /// The kind of provider that speaks it.
    pub(super) const fn kind(self) -> Kind {
        match self {
            Api::Anthropic => Kind::Anthropic,
            Api::OpenAiChat => Kind::OpenAiChat,
            Api::OpenAiResponses => Kind::OpenAiResponses,
        }
    }

    /// The API of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses].into_iter().find(|api| api.name() == name)
    }

    /// The vendor's own address.
    pub(super) const fn vendor_url(self) -> &'static str {
        match self {
            Api::Anthropic => "https://api.anthropic.com",
            Api::OpenAiChat | Api::OpenAiResponses => "https://api.openai.com/v1",
        }
    }

    /// Where the vendor's users usually keep their key.
    pub(super) const fn key_variable(self) -> &'static str {
        match self {
            Api::Anthropic => "ANTHROPIC_API_KEY",
            Api::OpenAiChat | Api::OpenAiResponses => "OPENAI_API_KEY",
        }
    }

    /// Where requests go, below `base_url`.
    pub(super) fn endpoint(self, base_url: &str) -> String {
        let base = base_url.trim_end_matches('/');
        match self {
            // Many write the version into the address, as for other providers.
            Api::Anthropic => format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base)),
            Api::OpenAiChat => format!("{base}/chat/completions"),
            Api::OpenAiResponses => format!("{base}/responses"),
        }
    }

    /// The body of a request. What it says again is taken from what was `written` before.
    pub(super) fn body(
        self,
        request: &ModelRequest,
        settings: &ModelSettings,
        to: RequestTarget<'_>,
        written: &RequestCache,
    ) -> Result<Vec<u8>, ModelFault> {
        match self {
            Api::Anthropic => anthropic::body(request, settings, written),
            Api::OpenAiChat => openai_chat::body(request, settings, to.is_vendor),
            Api::OpenAiResponses => openai_responses::body(request, settings, to.store, to.previous),
        }
        .map_err(|error| fault::garbage(format_args!("the request could not be written ({error})")))
    }

    /// The limit on the answer that a request sends, in tokens.
    pub(super) fn output_limit(self, request: &ModelRequest, settings: &ModelSettings) -> Option<u32> {
        match self {
            Api::Anthropic => Some(anthropic::output_limit(request, settings)),
            Api::OpenAiChat => openai_chat::output_limit(request, settings),
            Api::OpenAiResponses => openai_responses::output_limit(request, settings),
        }
    }
}

/// Why an event ends the answer.
pub(super) enum EventError {
    /// It is not what the API promises.
    Unreadable(serde_json::Error),
    /// It says so, or it contradicts an earlier one.
    Fault(ModelFault),
}

impl EventError {
    /// As a fault; `has_begun`: an earlier event of the answer could be read.
    pub(super) fn into_fault(self, has_begun: bool) -> ModelFault {
        match self {
            EventError::Unreadable(error) => fault::unreadable_event(&error, has_begun),
            EventError::Fault(fault) => fault,
        }
    }
}

impl From<serde_json::Error> for EventError {
    fn from(error: serde_json::Error) -> Self {
        EventError::Unreadable(error)
    }
}

impl From<ModelFault> for EventError {
    fn from(fault: ModelFault) -> Self {
        EventError::Fault(fault)
    }
}

/// What a provider's events mean.
pub(super) trait Decode: Send {
    /// The data of one event.
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), EventError>;
    /// Tokens that were reported so far.
    fn usage(&self) -> Usage;
    /// The provider said that nothing more comes.
    fn is_done(&self) -> bool;
    /// If the stream ended here, would the answer be whole?
    fn may_end(&self) -> bool;
    /// The stream has ended without saying why, and there are calls: what is left of one that was cut may
    /// look like one without arguments. Texts do no harm, and some servers never say why.
    fn may_be_cut(&self) -> bool;
    /// A body that holds the answer in one piece.
    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), ModelFault>;
    /// The reply. Only after the answer may end.
    fn reply(self: Box<Self>, out: &mut Vec<Delta>) -> ModelReply;
}

/// Reads one answer of any API from its bytes.
pub(super) struct Reader {
    parser: Parser,
    decoder: Box<dyn Decode>,
    /// Something arrived that was an event.
    has_events: bool,
    /// An event could be read.
    has_begun: bool,
    /// The first bytes, to say what came instead of events.
    head: Vec<u8>,
}

impl Reader {
    const HEAD: usize = 512;

    pub(super) fn new(api: Api, ids: CallIds) -> Self {
        let decoder: Box<dyn Decode> = match api {
            Api::Anthropic => Box::new(anthropic::Decoder::new(ids)),
            Api::OpenAiChat => Box::new(openai_chat::Decoder::new(ids)),
            Api::OpenAiResponses => Box::new(openai_responses::Decoder::new(ids)),
        };
        Self { parser: Parser::default(), decoder, has_events: false, has_begun: false, head: Vec::new() }
    }

    /// Takes the next bytes of an event stream. What they tell is put into `out` even if they end
    /// in a fault.
    pub(super) fn feed(&mut self, chunk: &[u8], out: &mut Vec<Delta>) -> Result<(), ModelFault> {
        if !self.has_events {
            let room = Self::HEAD - self.head.len();
            self.head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        let (decoder, has_events, has_begun) = (&mut self.decoder, &mut self.has_events, &mut self.has_begun);
        self.parser.feed(chunk, |event| {
            *has_events = true;
            if decoder.is_done() {
                return Ok(());
            }
            let outcome = decoder.event(&String::from_utf8_lossy(event.data), out);
            outcome.map_err(|error| error.into_fault(*has_begun))?;
            *has_begun = true;
            Ok(())
        })
    }

    /// Tokens that the provider reported so far; none if it has not.
    pub(super) fn usage(&self) -> Usage {
        self.decoder.usage()
    }

    /// The answer is complete and nothing more is to be read.
    pub(super) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// The answer is complete; what may follow (counts of tokens) is welcome but not needed.
    pub(super) fn may_end(&self) -> bool {
        self.decoder.may_end()
    }

    /// The stream has ended.
    pub(super) fn end(mut self, out: &mut Vec<Delta>) -> Result<ModelReply, ModelFault> {
        if !self.decoder.is_done() {
            let decoder = &mut self.decoder;
            let mut had_tail = false;
            // An event without its blank line may be whole or cut. What cannot be read was cut.
            self.parser.finish(|event| {
                had_tail = true;
                let _ = decoder.event(&String::from_utf8_lossy(event.data), out);
                Ok::<_, ModelFault>(())
            })?;
            self.has_events |= had_tail;
        }
        if self.decoder.may_end() && self.decoder.may_be_cut() {
            return Err(fault::unexplained());
        }
        if self.decoder.may_end() {
            return Ok(self.decoder.reply(out));
        }
        if self.has_events || looks_like_events(&self.head) {
            return Err(fault::cut());
        }
        let got = fault::describe(&self.head);
        Err(fault::garbage(format_args!(
            "expected an event stream, got: {got}; check base_url of the provider"
        )))
    }

    /// Reads a body that is the whole answer.
    pub(super) fn whole(mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<ModelReply, ModelFault> {
        let text = String::from_utf8_lossy(body);
        self.decoder.whole(&text, out)?;
        Ok(self.decoder.reply(out))
    }
}

/// Whether these first bytes may be the beginning of an event stream; nothing at all may be, too.
fn looks_like_events(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    [&b"data"[..], b"event", b"id", b"retry", b":"]
        .iter()
        .any(|field| head.starts_with(field) || field.starts_with(head))
}
