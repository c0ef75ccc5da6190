//! Anthropic Messages: serialising requests and decoding events.

mod request;
mod stream;
#[cfg(test)]
mod tests;
mod thinking;

pub(super) use request::body;
pub(super) use stream::Decoder;
pub(super) use thinking::{INTERLEAVED, asks_to_think, output_limit, sends_interleaved};
