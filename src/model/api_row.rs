//! The row of an API, which its adapter fills.

use super::settings::{MaxTokensField, ModelSettings, ProviderKind};
use crate::request::request_cache::RequestCache;
use crate::stream::assembly::CallIds;
use crate::stream::decode::Decode;
use types::model::ModelRequest;
use types::sampling::Sampling;
use types::vendor::Vendor;

/// The target of a request, as far as the body depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestTarget<'a> {
    /// Whether the provider is the API's vendor, not another server with the same API.
    pub is_vendor: bool,
    /// The field of the output limit (Chat Completions).
    pub max_tokens_field: Option<MaxTokensField>,
    /// Whether the server refuses to report the use of a stream (Chat Completions).
    pub refuses_stream_options: bool,
    /// Whether the provider stores its answer, so that a later request can continue it.
    pub store: bool,
    /// Id of the answer that the request continues: all messages up to it are omitted.
    pub previous: Option<&'a str>,
}

/// All that differs between the APIs, one row in each adapter. No other code compares APIs.
pub(super) struct ApiRow {
    /// The kind of provider that uses the API.
    pub kind: ProviderKind,
    /// The name of the API in a cassette.
    pub name: &'static str,
    pub vendor: Vendor,
    /// Whether the vendor's own address is used with this API if nothing is configured; servers like it use another one.
    pub is_vendors_default: bool,
    /// Path of requests. Users may write the first part, the version, into `base_url`, too.
    pub path: (&'static str, &'static str),
    pub key: KeyHeader,
    pub version: Option<VersionHeader>,
    /// Whether servers differ in the name of the output limit ([`MaxTokensField`]).
    pub has_max_tokens_fields: bool,
    /// Whether a provider can store the conversation.
    pub stores_conversations: bool,
    /// Whether unknown models at unknown servers probably receive pictures.
    pub sees_pictures: bool,
    pub body:
        fn(&ModelRequest, &ModelSettings, RequestTarget<'_>, &RequestCache) -> serde_json::Result<Vec<u8>>,
    /// The output limit that a request sends, in tokens.
    pub output_limit: fn(&ModelRequest, &ModelSettings) -> Option<u32>,
    /// Whether a request asks the model to think, where that limits other parameters.
    pub asks_to_think: fn(&ModelRequest, &ModelSettings) -> bool,
    /// The value that a request adds to the header of beta features.
    pub beta: fn(&ModelRequest, &ModelSettings) -> Option<&'static str>,
    /// The sampling settings that the API takes of the wanted ones, with or without thinking.
    pub sampling: fn(Sampling, bool) -> Sampling,
    pub decoder: fn(CallIds) -> Box<dyn Decode>,
}

pub(super) enum KeyHeader {
    /// `Authorization: Bearer KEY`. Azure takes a key in a header of its own.
    Bearer,
    /// The key alone, in this header.
    Named(&'static str),
}

/// The header with the version of the API.
pub(super) struct VersionHeader {
    pub name: &'static str,
    /// The value if the configuration sets none.
    pub default: &'static str,
    /// From this version on, a request with `temperature`, `top_p` or `top_k` is refused.
    pub without_sampling: &'static str,
}
