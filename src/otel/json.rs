//! OTLP as JSON: protobuf's mapping, except that ids are hexadecimal and enums are numbers.
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>

use serde_json::{Value, json};

use super::histogram::{Attribute, Histogram};
use super::spans::{Kind, Span};
use types::hex;
use types::time::Timestamp;

/// Sums since the start instead of since the last request: `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// The body for `/v1/traces`.
pub(super) fn traces(service: &str, spans: &[Span]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{"resource": resource(service), "scopeSpans": [{"scope": scope(), "spans": spans}]}]})
}

/// The body for `/v1/metrics`.
pub(super) fn metrics(service: &str, histograms: &[&Histogram], began: Timestamp, now: Timestamp) -> Value {
    let metrics: Vec<Value> = histograms.iter().map(|one| metric(one, began, now)).collect();
    let scoped = json!([{"scope": scope(), "metrics": metrics}]);
    json!({"resourceMetrics": [{"resource": resource(service), "scopeMetrics": scoped}]})
}

fn resource(service: &str) -> Value {
    let attributes = [
        ("service.name", service),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("telemetry.sdk.language", "rust"),
    ];
    let attributes: Vec<Value> =
        attributes.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect();
    json!({"attributes": attributes})
}

fn scope() -> Value {
    json!({"name": "agentd", "version": env!("CARGO_PKG_VERSION")})
}

fn span(span: &Span) -> Value {
    let mut made = json!({
        "traceId": hex::encode(&span.trace),
        "spanId": hex::encode(&span.id),
        "name": span.name,
        "kind": match span.kind { Kind::Internal => 1, Kind::Client => 3 },
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end),
        "attributes": attributes(&span.attributes),
        // 0 is unset: an instrumentation does not set the status `Ok` itself.
        "status": {"code": if span.is_error { 2 } else { 0 }},
    });
    if let Some(parent) = &span.parent {
        made["parentSpanId"] = hex::encode(parent).into();
    }
    made
}

fn metric(histogram: &Histogram, began: Timestamp, now: Timestamp) -> Value {
    let points: Vec<Value> = histogram
        .points()
        .map(|(attributes_of, point)| {
            json!({
                "attributes": attributes(attributes_of),
                "startTimeUnixNano": nanos(began),
                "timeUnixNano": nanos(now),
                "count": point.count.to_string(),
                "sum": point.sum,
                "bucketCounts": point.buckets.iter().map(u64::to_string).collect::<Vec<_>>(),
                "explicitBounds": histogram.bounds,
            })
        })
        .collect();
    json!({
        "name": histogram.name,
        "unit": histogram.unit,
        "histogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": points},
    })
}

fn attributes(attributes: &[(&'static str, Attribute)]) -> Vec<Value> {
    let value = |attribute: &Attribute| match attribute {
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Texts(texts) => {
            let values: Vec<Value> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
        // A JSON number cannot hold all 64-bit integers.
        Attribute::Count(count) => json!({"intValue": count.to_string()}),
        Attribute::Real(real) => json!({"doubleValue": real}),
    };
    attributes.iter().map(|(key, attribute)| json!({"key": key, "value": value(attribute)})).collect()
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.0) * 1_000_000).max(0).to_string()
}
