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

pub(super) use request::{body, output_limit};
pub(super) use stream::Decoder;
