//! OpenAI Chat Completions, the common API of local servers and routers: serialising requests and decoding
//! chunks.

mod calls;
mod request;
mod stream;
#[cfg(test)]
mod tests;
mod think_tags;

pub(super) use request::{body, output_limit};
pub(super) use stream::Decoder;
