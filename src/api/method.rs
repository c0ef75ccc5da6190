//! One method of the wire contract.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::fault::Code;
use super::params::ClientRole;

/// A method as the dispatcher and the reference use it.
#[derive(Clone, Copy)]
pub struct Method {
    /// `namespace.verb`.
    pub name: &'static str,
    /// One line for the reference.
    pub summary: &'static str,
    /// Parameters that are planned but not implemented. The daemon refuses them and never ignores them.
    pub unsupported_params: &'static [&'static str],
    /// Errors of this method in addition to those that every method can return.
    pub errors: &'static [Code],
    /// Whether the method changes state. Observers may not call such a method.
    pub mutates: bool,
    /// Whether the reply waits until some work ends. Later calls of the connection may then be answered before it.
    pub waits: bool,
    names: fn() -> &'static [&'static str],
}

/// A row of the tables of methods. The functions that generate schemas are not part of [`Method`]: only the reference
/// needs them, and the daemon would be a megabyte larger with them.
#[derive(Clone, Copy)]
pub(super) struct MethodRow {
    pub name: &'static str,
    pub summary: &'static str,
    pub unsupported_params: &'static [&'static str],
    pub errors: &'static [Code],
    pub mutates: bool,
    pub waits: bool,
    pub params: fn(&mut SchemaGenerator) -> Value,
    pub names: fn() -> &'static [&'static str],
    pub reply: fn(&mut SchemaGenerator) -> Value,
}

impl MethodRow {
    pub const fn method(&self) -> Method {
        let Self { name, summary, unsupported_params, errors, mutates, waits, names, .. } = *self;
        Method { name, summary, unsupported_params, errors, mutates, waits, names }
    }

    pub const fn schemas(&self) -> MethodSchemas {
        MethodSchemas { params: self.params, reply: self.reply }
    }
}

/// JSON Schemas of a method's parameters and reply.
#[derive(Clone, Copy)]
pub(super) struct MethodSchemas {
    pub params: fn(&mut SchemaGenerator) -> Value,
    pub reply: fn(&mut SchemaGenerator) -> Value,
}

/// Methods for a process that a tool started, with which it can identify the daemon. With any other method, a model's
/// commands could answer their own permission requests or read other sessions.
const FOR_TOOLS: &[&str] = &["rpc.discover", "daemon.hello", "daemon.status"];

impl Method {
    /// Whether a client with this role may call the method.
    #[must_use]
    pub fn is_for(&self, role: ClientRole) -> bool {
        match role {
            ClientRole::Controller => true,
            ClientRole::Observer => !self.mutates,
            ClientRole::Tool => FOR_TOOLS.contains(&self.name),
        }
    }

    /// Names of the parameters in their declared order. Parameters by position follow this order, so new parameters
    /// are appended.
    #[must_use]
    pub fn param_names(&self) -> &'static [&'static str] {
        (self.names)()
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

pub(super) fn bool_schema(_: &mut SchemaGenerator) -> Value {
    json!({"type": "boolean"})
}
