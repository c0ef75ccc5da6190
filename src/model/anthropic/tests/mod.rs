//! Tests of the adapter of Anthropic Messages.

mod request;
mod stream;
