//! Layer 2: OpenTelemetry (Q36, L11), behind the feature `otel`. Turns, model calls and tool calls as
//! spans, tokens and durations as metrics, in the words of the GenAI semantic conventions
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>), sent as OTLP with JSON over HTTP
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
//!
//! Written by hand: the format is small, and the HTTP client and the TLS are those that talk to models.
//! What was said is in no span. Whatever becomes of the receiver, no session waits for it or hears of it.

mod exporter;
mod histogram;
mod json;
mod spans;
#[cfg(test)]
mod tests;

pub use exporter::{Exporter, Settings, Watcher};
