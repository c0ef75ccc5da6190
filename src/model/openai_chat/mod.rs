//! OpenAI Chat Completions, the common API of local servers and routers: serialising requests and decoding
//! chunks.

mod calls;
mod request;
mod stream;
#[cfg(test)]
mod tests;
mod think_tags;

use crate::api_row::{ApiRow, KeyHeader};
use crate::settings::ProviderKind;
use types::vendor::OPENAI;

pub(super) static ROW: ApiRow = ApiRow {
    kind: ProviderKind::OpenAiChat,
    name: "openai_chat",
    vendor: OPENAI,
    is_vendors_default: false,
    path: ("", "/chat/completions"),
    key: KeyHeader::Bearer,
    version: None,
    has_max_tokens_fields: true,
    stores_conversations: false,
    sees_pictures: false,
    body: |request, settings, to, _| request::body(request, settings, to),
    output_limit: request::output_limit,
    asks_to_think: |_, _| false,
    beta: |_, _| None,
    sampling: |wanted, _| wanted,
    decoder: |ids| Box::new(stream::Decoder::new(ids)),
};
