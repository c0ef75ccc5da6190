//! OpenAI Responses (`/v1/responses`), as OpenAI's API reference describes it.
//!
//! Two ways to keep a conversation: stateless (the default), where the whole history is sent and
//! reasoning travels encrypted (`include: reasoning.encrypted_content`, `store: false`), and stateful
//! (`store = true` of the provider), where the server keeps what it said and a request names the answer
//! it continues (`previous_response_id`). A server that lost that answer gets the history instead.

mod items;
mod request;
mod stream;

#[cfg(test)]
mod tests;

pub(super) use request::{body, output_limit};
pub(super) use stream::Decoder;
