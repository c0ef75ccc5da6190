//! One method of the wire contract.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::fault::Code;
use super::params::ClientRole;

/// One method.
#[derive(Clone, Copy)]
pub struct Method {
    /// `namespace.verb`.
    pub name: &'static str,
    /// One line for the reference.
    pub summary: &'static str,
    /// Parameters that are planned but not implemented: refused, never ignored.
    pub unbuilt: &'static [&'static str],
    /// Errors beyond the standard ones.
    pub errors: &'static [Code],
    /// Whether it changes state: then an observer may not call it.
    pub mutates: bool,
    /// Whether the reply waits for work to end: later calls of the connection may then be answered earlier.
    pub waits: bool,
    pub(super) params: fn(&mut SchemaGenerator) -> Value,
    pub(super) names: fn() -> &'static [&'static str],
    pub(super) reply: fn(&mut SchemaGenerator) -> Value,
}

/// Methods for a process that a tool started: it may identify the daemon. Any other method could let a model's
/// commands answer their own requests, or read other sessions.
const FOR_TOOLS: &[&str] = &["rpc.discover", "daemon.hello", "daemon.status"];

impl Method {
    /// Whether a client of this role may call it.
    #[must_use]
    pub fn is_for(&self, role: ClientRole) -> bool {
        match role {
            ClientRole::Controller => true,
            ClientRole::Observer => !self.mutates,
            ClientRole::Tool => FOR_TOOLS.contains(&self.name),
        }
    }
    /// JSON Schema of the parameters.
    pub fn params_schema(&self, generator: &mut SchemaGenerator) -> Value {
        (self.params)(generator)
    }
    /// Names of the parameters in their declared order, which applies to parameters by position. New ones are
    /// appended.
    #[must_use]
    pub fn param_names(&self) -> &'static [&'static str] {
        (self.names)()
    }
    /// JSON Schema of the reply.
    pub fn reply_schema(&self, generator: &mut SchemaGenerator) -> Value {
        (self.reply)(generator)
    }
}

pub(super) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

pub(super) fn subscription_id(_: &mut SchemaGenerator) -> Value {
    json!({"type": "string", "description": "the subscription"})
}

pub(super) fn any_object(_: &mut SchemaGenerator) -> Value {
    json!({"type": "object"})
}

pub(super) fn truth(_: &mut SchemaGenerator) -> Value {
    json!({"type": "boolean"})
}
