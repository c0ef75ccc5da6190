//! OpenAI Responses (`/v1/responses`), as OpenAI's API reference describes it.
//!
//! There are two ways to keep a conversation. Stateless (the default): each request contains the whole history, and
//! reasoning is sent encrypted (`include: reasoning.encrypted_content`, `store: false`). Stateful (`store = true` of
//! the provider): the server stores its answers, and a request names the answer that it continues
//! (`previous_response_id`). If the server no longer has that answer, the request is sent with the history.

mod items;
mod request;
mod stream;

#[cfg(test)]
mod tests;

use crate::api_row::{ApiRow, KeyHeader};
use crate::settings::ProviderKind;
use types::vendor::OPENAI;

pub(super) static ROW: ApiRow = ApiRow {
    kind: ProviderKind::OpenAiResponses,
    name: "openai_responses",
    vendor: OPENAI,
    is_vendors_default: true,
    path: ("", "/responses"),
    key: KeyHeader::Bearer,
    version: None,
    has_max_tokens_fields: false,
    stores_conversations: true,
    sees_pictures: true,
    body: |request, settings, to, _| request::body(request, settings, to.store, to.previous),
    output_limit: request::output_limit,
    asks_to_think: |_, _| false,
    beta: |_, _| None,
    sampling: |wanted, _| wanted,
    decoder: |ids| Box::new(stream::Decoder::new(ids)),
};
