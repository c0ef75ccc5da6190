//! OpenAI Chat Completions, the common tongue of local servers and routers: how a request is
//! written and what its chunks mean.

mod calls;
mod request;
mod stream;
#[cfg(test)]
mod tests;

pub(super) use request::{body, output_limit};
pub(super) use stream::Decoder;
