//! An example of each method: what the test `contract::examples` sent to a daemon, and its reply.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// Recorded by the test. Ids, times and paths are replaced, long lists and texts are cut.
static EXAMPLES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../proto-docs/examples.json")).unwrap_or_default()
});

/// The parameters and the reply of a method's example.
pub(crate) fn example(method: &str) -> Option<(&'static Map<String, Value>, &'static Value)> {
    let example = EXAMPLES.get(method)?;
    Some((example["params"].as_object()?, &example["result"]))
}

/// The `examples` of a method in the OpenRPC document.
pub(crate) fn pairings(method: &str) -> Value {
    let Some((params, result)) = example(method) else { return json!([]) };
    let params: Vec<Value> =
        params.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!([{"name": method, "params": params, "result": {"name": "reply", "value": result}}])
}
