//! OpenTelemetry: exports turns, model calls and tool calls as spans, and
//! tokens and durations as metrics. Names follow the GenAI semantic conventions
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>). The data is sent as OTLP with JSON over HTTP
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
//!
//! There is no SDK: the format is small, and HTTP client and TLS are those of the model calls. No span contains
//! conversation text. A failure of the receiver delays no session and is not reported to it.

mod exporter;
mod histogram;
mod json;
mod spans;
#[cfg(test)]
mod tests;

pub use exporter::{EventReceiver, Exporter, Settings};
