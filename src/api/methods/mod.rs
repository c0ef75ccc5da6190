//! The table of methods. Each row is a type: it ties the name of a method to its parameters, its reply, the roles that may
//! call it, its errors and its notifications. The daemon registers a handler for the type, a client calls the type, and
//! the reference is printed from the rows.

pub mod agent;
pub mod command;
pub mod daemon;
pub mod job;
pub mod knowledge;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod permission;
pub mod rpc;
pub mod schedule;
pub mod session;
pub mod tool;
pub mod workspace;
pub mod worktree;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fault::Code;
use super::field_names::field_names;
use super::params::ClientRole;

/// A method with the types of its parameters and its reply.
pub trait ApiMethod: 'static {
    /// What a client sends.
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// What the daemon answers.
    type Reply: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// The rest of the row.
    const METHOD: Method;
}

/// A row without its types, as the dispatcher and the reference use it.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// `namespace.verb`.
    pub name: &'static str,
    /// One line for the reference.
    pub summary: &'static str,
    /// Roles, errors and other properties.
    pub traits: Traits,
    names: fn() -> &'static [&'static str],
}

/// Properties of a method. The constants [`READS`] and [`CHANGES`] begin a row.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether the method changes state. Observers may not call such a method.
    pub mutates: bool,
    /// Whether the reply waits until some work ends. Later calls of the connection may then be answered before it.
    pub waits: bool,
    /// Whether a process that a tool started may call the method, for example to identify the daemon. With any other
    /// method, a model's commands could answer their own permission requests or read other sessions.
    pub is_for_tools: bool,
    /// Parameters that are planned but not implemented. The daemon refuses them and never ignores them.
    pub unsupported_params: &'static [&'static str],
    /// Notifications that the method starts.
    pub notifications: &'static [&'static str],
    /// The method that does the same, if this row is a second name for it.
    pub alias_of: Option<&'static str>,
    /// Errors of this method in addition to those that every method can return.
    pub errors: &'static [Code],
    /// All parameters by position, if their order differs from that of the fields. New ones are appended.
    first_positions: &'static [&'static str],
}

/// A method that only reads.
const READS: Traits = Traits {
    mutates: false,
    waits: false,
    is_for_tools: false,
    unsupported_params: &[],
    notifications: &[],
    alias_of: None,
    errors: &[],
    first_positions: &[],
};

/// A method that changes state.
const CHANGES: Traits = Traits { mutates: true, ..READS };

impl Traits {
    const fn waits(self) -> Self {
        Self { waits: true, ..self }
    }

    const fn for_tools(self) -> Self {
        Self { is_for_tools: true, ..self }
    }

    const fn without_params(self, unsupported_params: &'static [&'static str]) -> Self {
        Self { unsupported_params, ..self }
    }

    const fn notifies(self, notifications: &'static [&'static str]) -> Self {
        Self { notifications, ..self }
    }

    const fn alias_of(self, name: &'static str) -> Self {
        Self { alias_of: Some(name), ..self }
    }

    const fn in_order(self, first_positions: &'static [&'static str]) -> Self {
        Self { first_positions, ..self }
    }

    const fn errors(self, errors: &'static [Code]) -> Self {
        Self { errors, ..self }
    }
}

impl Method {
    /// Whether a client with this role may call the method.
    #[must_use]
    pub fn is_for(&self, role: ClientRole) -> bool {
        match role {
            ClientRole::Controller => true,
            ClientRole::Observer => !self.traits.mutates,
            ClientRole::Tool => self.traits.is_for_tools,
        }
    }

    /// Names of the parameters in the order of parameters by position. New parameters are appended.
    #[must_use]
    pub fn param_names(&self) -> Vec<&'static str> {
        let first = self.traits.first_positions;
        let others = (self.names)().iter().filter(|name| !first.contains(name));
        first.iter().chain(others).copied().collect()
    }

    /// Whether a repeated call with the same `idempotency_key` returns the first reply and does nothing else.
    #[must_use]
    pub fn takes_idempotency_key(&self) -> bool {
        self.param_names().contains(&"idempotency_key")
    }
}

/// JSON Schemas of a method's parameters and reply. They are not part of [`Method`]: only the reference needs them, and
/// the daemon would be a megabyte larger with them.
#[derive(Clone, Copy)]
pub(super) struct MethodSchemas {
    pub params: fn(&mut SchemaGenerator) -> Value,
    pub reply: fn(&mut SchemaGenerator) -> Value,
    /// Reads a reply as a client does.
    #[cfg(test)]
    read_reply: ReadReply,
}

#[cfg(test)]
type ReadReply = fn(&Value) -> Result<(), String>;

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

const fn schemas<M: ApiMethod>() -> MethodSchemas {
    MethodSchemas {
        params: schema::<M::Params>,
        reply: schema::<M::Reply>,
        #[cfg(test)]
        read_reply: read_as::<M::Reply>,
    }
}

#[cfg(test)]
fn read_as<T: DeserializeOwned>(reply: &Value) -> Result<(), String> {
    serde_json::from_str::<T>(&reply.to_string()).map(|_| ()).map_err(|error| error.to_string())
}

/// The rows of one namespace: documentation, name of the type and of the method, parameters, reply, properties.
macro_rules! methods {
    ($($(#[doc = $summary:literal])+ $row:ident = $name:literal, $params:ty => $reply:ty, $traits:expr;)+) => {
        $(
            $(#[doc = $summary])+
            #[derive(Clone, Copy, Debug)]
            pub struct $row;

            impl super::ApiMethod for $row {
                type Params = $params;
                type Reply = $reply;
                const METHOD: super::Method = super::Method {
                    name: $name,
                    summary: concat!($($summary),+).trim_ascii_start(),
                    traits: $traits,
                    names: super::field_names::<$params>,
                };
            }
        )+

        pub(super) const METHODS: &[super::Method] = &[$(<$row as super::ApiMethod>::METHOD),+];
        pub(super) const SCHEMAS: &[super::MethodSchemas] = &[$(super::schemas::<$row>()),+];
    };
}
use methods;

/// Joins parts of a table.
const fn join<T: Copy, const N: usize>(parts: &[&[T]]) -> [T; N] {
    let mut all = [parts[0][0]; N];
    let (mut index, mut part) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[index] = parts[part][at];
            index += 1;
            at += 1;
        }
        part += 1;
    }
    assert!(index == N, "the table has another length");
    all
}

/// A table of all namespaces, in the order of the reference.
macro_rules! table {
    ($table:ident: $($namespace:ident)+) => {{
        const COUNT: usize = 0 $(+ $namespace::$table.len())+;
        &join::<_, COUNT>(&[$($namespace::$table),+])
    }};
    ($table:ident) => {
        table!($table: rpc daemon session permission memory agent command tool mcp model workspace knowledge job schedule worktree)
    };
}

/// Every method, in the order of the reference.
pub static METHODS: &[Method] = table!(METHODS);

/// The schemas of every method, in the order of [`METHODS`].
pub(super) static SCHEMAS: &[MethodSchemas] = table!(SCHEMAS);

/// The method with this name; `None` if there is none.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The replies of the first release of the protocol, and how a client of today reads each of them.
    fn first_replies() -> Vec<(&'static str, Value, ReadReply)> {
        let first = include_str!("../../../tests/fixtures/protocol-1.json");
        let first: Value = serde_json::from_str(first).expect("examples");
        let rows = METHODS.iter().zip(SCHEMAS);
        let known = rows.filter_map(|(method, row)| {
            let example = first.get(method.name)?;
            Some((method.name, example["result"].clone(), row.read_reply))
        });
        known.collect()
    }

    #[test]
    fn replies_of_an_older_daemon_can_be_read() {
        let replies = first_replies();
        assert!(replies.len() > 80, "{}", replies.len());
        for (name, reply, read) in replies {
            assert_eq!(read(&reply), Ok(()), "{name}: a new field of a reply needs a default");
        }
    }

    /// Pointers to all objects of a value.
    fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.push(path.to_owned());
                for (name, inner) in members {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    objects(inner, &format!("{path}/{name}"), found);
                }
            }
            Value::Array(list) => {
                list.iter()
                    .enumerate()
                    .for_each(|(at, inner)| objects(inner, &format!("{path}/{at}"), found));
            }
            _ => {}
        }
    }

    /// Maps from names to values, where a further name is no further field.
    const MAPS: [&str; 8] = [
        "/jobs/completed",
        "/jobs/open",
        "/calls_by_service_tier",
        "/tool_calls",
        "/turns_completed",
        "/session/models",
        "/usage_by_model",
        "/labels",
    ];

    /// Except in prices: the same type reads the configuration, where an unknown part is a mistake.
    #[test]
    fn fields_that_a_newer_daemon_adds_are_ignored() {
        let mut unread = Vec::new();
        for (name, reply, read) in first_replies() {
            let mut paths = Vec::new();
            objects(&reply, "", &mut paths);
            for path in paths {
                let mut longer = reply.clone();
                let object = longer.pointer_mut(&path).and_then(Value::as_object_mut).expect("an object");
                object.insert("of_a_later_version".into(), Value::Array(vec![1.into(), "x".into()]));
                if read(&longer).is_err() {
                    unread.push(format!("{name}{path}"));
                }
            }
        }
        unread.retain(|path| !MAPS.iter().any(|map| path.ends_with(map)) && !path.ends_with("/price"));
        assert_eq!(unread, Vec::<String>::new(), "older clients cannot read a reply with more fields there");
    }

    /// The place of a parameter that is not in the list would depend on the order of two lists of fields, and so would
    /// digests of idempotency keys.
    #[test]
    fn order_of_parameters_names_each_parameter() {
        let ordered = METHODS.iter().filter(|method| !method.traits.first_positions.is_empty());
        for method in ordered {
            let (mut listed, mut fields) =
                (method.traits.first_positions.to_vec(), (method.names)().to_vec());
            listed.sort_unstable();
            fields.sort_unstable();
            assert_eq!(listed, fields, "{}: append new parameters to its list", method.name);
        }
    }
}
