//! One interface for the adapters of all APIs: a row for each, which writes requests and reads answers.

use reqwest::Url;

use super::settings::{Api, ModelSettings, ProviderKind};
use crate::api_row::{ApiRow, RequestTarget};
use crate::request::request_cache::RequestCache;
use crate::stream::assembly::CallIds;
use crate::stream::decode::{Decode, EventError};
use crate::stream::fault::{self, WireError};
use crate::stream::split_chars::decode_text;
use crate::stream::sse::Parser;
use crate::{anthropic, openai_chat, openai_responses};
use types::model::{Delta, ModelFault, ModelReply, ModelRequest};
use types::usage::Usage;
use types::vendor::Vendor;

impl Api {
    pub(super) const ALL: &'static [Api] = <Api as strum::VariantArray>::VARIANTS;

    pub(super) fn row(self) -> &'static ApiRow {
        match self {
            Api::Anthropic => &anthropic::ROW,
            Api::OpenAiChat => &openai_chat::ROW,
            Api::OpenAiResponses => &openai_responses::ROW,
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|api| api.row().name == name)
    }

    /// The API of a provider; `None` for recorded answers.
    pub(super) fn of_kind(kind: ProviderKind) -> Option<Self> {
        Self::ALL.iter().copied().find(|api| api.row().kind == kind)
    }

    /// The URL of requests, from `base_url`, whose query is kept.
    pub(super) fn endpoint(self, base_url: &Url) -> Url {
        let (version, own) = self.row().path;
        let base = base_url.path().trim_end_matches('/');
        let mut url = base_url.clone();
        url.set_path(&format!("{}{version}{own}", base.strip_suffix(version).unwrap_or(base)));
        url
    }

    /// The URL of the list of models, from the URL of requests.
    pub(super) fn list_url(self, endpoint: &Url) -> Url {
        let path = endpoint.path();
        let mut url = endpoint.clone();
        url.set_path(&format!("{}/models", path.strip_suffix(self.row().path.1).unwrap_or(path)));
        url
    }

    /// The body of a request. Repeated messages are copied from the cache `written`.
    pub(super) fn body(
        self,
        request: &ModelRequest,
        settings: &ModelSettings,
        to: RequestTarget<'_>,
        written: &RequestCache,
    ) -> Result<Vec<u8>, ModelFault> {
        (self.row().body)(request, settings, to, written).map_err(|error| {
            fault::invalid_answer(format_args!("the request could not be written ({error})"))
        })
    }
}

/// The kind of provider for a vendor that has a key but no configuration.
#[must_use]
pub fn kind_of_vendor(vendor: &Vendor, base_url: &str) -> Option<ProviderKind> {
    let mut rows = Api::ALL.iter().map(|api| api.row()).filter(|row| row.vendor.name == vendor.name);
    rows.find(|row| row.is_vendors_default == vendor.owns(base_url)).map(|row| row.kind)
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
        let decoder = (api.row().decoder)(ids);
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

#[cfg(test)]
mod tests {
    use super::*;
    use types::vendor::VENDORS;

    #[test]
    fn every_vendor_has_row_for_own_address() {
        for vendor in &VENDORS {
            let kind = kind_of_vendor(vendor, vendor.base_url).expect(vendor.name);
            let api = Api::of_kind(kind).expect("an API");
            assert_eq!((api.row().vendor, Api::from_name(api.row().name)), (*vendor, Some(api)));
            assert!(vendor.main_model.starts_with(&format!("{}/", vendor.name)), "{vendor:?}");
        }
    }
}
