//! The official JSON Schema of version 2 judges every message of a connection, in both directions.

use serde_json::{Value, json};

use super::judges::folder_with_node_sdk;
use crate::support::daemon::TestDaemon;

/// The schema, as the TypeScript SDK contains it.
pub(super) struct Schema(Value);

/// An update that a later schema has.
const LATER_UPDATE: &str = "replay_complete";

impl Schema {
    /// `None` if the SDK cannot be had, which is reported.
    pub(super) async fn load(daemon: &TestDaemon) -> Option<Self> {
        let Some(folder) = folder_with_node_sdk(&daemon.path("")).await else {
            base::skip_test!("npm cannot install the schema of the Agent Client Protocol");
            return None;
        };
        let file = folder.join("node_modules/@agentclientprotocol/sdk/schema/v2/schema.json");
        let text = std::fs::read(file).expect("the SDK has the schema");
        Some(Self(serde_json::from_slice(&text).expect("JSON")))
    }

    /// Checks all messages except requests that were refused. Each is judged by the definition of its method, because the schema as a whole accepts
    /// anything as the reply of an extension.
    pub(super) fn judge(&self, sent: &[Value], received: &[Value]) {
        for (messages, others) in [(sent, received), (received, sent)] {
            for message in messages {
                self.judge_message(message, others);
            }
        }
    }

    fn judge_message(&self, message: &Value, others: &[Value]) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let has_id = !message["id"].is_null();
        let is_refusal = |other: &Value| other["id"] == message["id"] && !other["error"].is_null();
        if has_id && others.iter().any(is_refusal) {
            return;
        }
        if let Some(method) = message["method"].as_str() {
            let suffix = if has_id { "Request" } else { "Notification" };
            assert_eq!(self.check(method, suffix, &message["params"]), Ok(()), "{message}");
            let update = &message["params"]["update"]["sessionUpdate"];
            let is_known = update.is_null() || update == LATER_UPDATE || self.names(update);
            assert!(is_known, "{message}");
            return;
        }
        if !message["error"].is_null() {
            assert_eq!(self.fits("Error", &message["error"]), Ok(()), "{message}");
            return;
        }
        let request = others.iter().find(|other| other["id"] == message["id"] && !other["method"].is_null());
        let method = request.and_then(|request| request["method"].as_str()).expect("a reply has a request");
        assert_eq!(self.check(method, "Response", &message["result"]), Ok(()), "{method}: {message}");
    }

    /// Whether the schema has an update of this kind.
    fn names(&self, kind: &Value) -> bool {
        let variants = self.0["$defs"]["SessionUpdate"]["anyOf"].as_array().expect("variants");
        variants.iter().any(|variant| variant["properties"]["sessionUpdate"]["const"] == *kind)
    }

    fn check(&self, method: &str, suffix: &str, value: &Value) -> Result<(), String> {
        let definitions = self.0["$defs"].as_object().expect("definitions");
        let is_it = |(name, it): &(&String, &Value)| it["x-method"] == method && name.ends_with(suffix);
        match definitions.iter().find(is_it) {
            Some((name, _)) => self.fits(name, value),
            None if method.starts_with('_') => Ok(()),
            None => Err(format!("the schema has no {method}")),
        }
    }

    fn fits(&self, name: &str, value: &Value) -> Result<(), String> {
        let schema = json!({"$schema": self.0["$schema"], "$defs": self.0["$defs"],
            "$ref": format!("#/$defs/{name}")});
        let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
        validator.validate(value).map_err(|error| error.to_string())
    }
}
