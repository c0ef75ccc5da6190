//! The table of methods. The reference prints it, and the dispatcher looks methods up in it.

use super::extension_methods::EXTENSION_METHODS;
use super::fault::Code;
use super::field_names::field_names;
use super::knowledge_methods::KNOWLEDGE_METHODS;
pub use super::method::Method;
use super::method::{MethodRow, MethodSchemas, any_object, schema, subscription_id};
use super::params as p;
use super::permission_methods::PERMISSION_METHODS;
use super::session_methods::SESSION_METHODS;
use super::workspace_methods::WORKSPACE_METHODS;
use types::metrics::Metrics;

/// The method with this name; `None` if there is none.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// The parts of the table, in the order of the reference.
const PARTS: [&[MethodRow]; 6] = [
    DAEMON_METHODS,
    SESSION_METHODS,
    PERMISSION_METHODS,
    EXTENSION_METHODS,
    WORKSPACE_METHODS,
    KNOWLEDGE_METHODS,
];

/// Number of methods.
const COUNT: usize = {
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

/// Every method, in the order of the reference.
pub static METHODS: &[Method] = &{
    let mut methods = [ROWS[0].method(); COUNT];
    let mut at = 0;
    while at < COUNT {
        methods[at] = ROWS[at].method();
        at += 1;
    }
    methods
};

/// The schemas of every method, in the order of [`METHODS`].
pub(super) static SCHEMAS: &[MethodSchemas] = &{
    let mut schemas = [ROWS[0].schemas(); COUNT];
    let mut at = 0;
    while at < COUNT {
        schemas[at] = ROWS[at].schemas();
        at += 1;
    }
    schemas
};

const ROWS: [MethodRow; COUNT] = {
    let mut all = [DAEMON_METHODS[0]; COUNT];
    let (mut index, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut at = 0;
        while at < PARTS[part].len() {
            all[index] = PARTS[part][at];
            index += 1;
            at += 1;
        }
        part += 1;
    }
    all
};

const DAEMON_METHODS: &[MethodRow] = &[
    MethodRow {
        name: "rpc.discover",
        summary: "The OpenRPC document of this daemon.",
        unsupported_params: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: any_object,
    },
    MethodRow {
        name: "daemon.hello",
        summary: "Agree on the protocol version and say who is calling. Optional, but others then see your name.",
        unsupported_params: &[],
        errors: &[Code::UnsupportedVersion],
        mutates: false,
        waits: false,
        params: schema::<p::HelloParams>,
        names: field_names::<p::HelloParams>,
        reply: schema::<p::HelloReply>,
    },
    MethodRow {
        name: "daemon.status",
        summary: "Version, places, numbers and the health of the storage.",
        unsupported_params: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: schema::<p::StatusReply>,
    },
    MethodRow {
        name: "daemon.metrics",
        summary: "What the daemon has done since it started, in numbers. `GET /metrics` on the socket gives them as text for \
                  Prometheus.",
        unsupported_params: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: schema::<Metrics>,
    },
    MethodRow {
        name: "daemon.config",
        summary: "The configuration in force, with the place that each value comes from. Secrets are masked.",
        unsupported_params: &[],
        errors: &[Code::InvalidParams],
        mutates: false,
        waits: false,
        params: schema::<p::ConfigParams>,
        names: field_names::<p::ConfigParams>,
        reply: schema::<p::ConfigReply>,
    },
    MethodRow {
        name: "daemon.subscribe",
        summary: "Follow all sessions, also those of sub-agents: created, changed and ended ones come as `daemon.event` \
                  notifications. Changes of one session that come together are one notification. After a very long pause \
                  of the reader, deleted sessions may be missing: list them again. End it with session.unsubscribe.",
        unsupported_params: &[],
        errors: &[Code::Overloaded],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: subscription_id,
    },
    MethodRow {
        name: "daemon.reload",
        summary: "Read the configuration again. What runs keeps what it began with; a wrong configuration is refused \
                  with its file and line, and the one in force stays.",
        unsupported_params: &[],
        errors: &[Code::InvalidParams, Code::Conflict, Code::ShuttingDown],
        mutates: true,
        waits: true,
        params: schema::<p::ReloadParams>,
        names: field_names::<p::ReloadParams>,
        reply: schema::<p::ReloadReply>,
    },
    MethodRow {
        name: "daemon.backup",
        summary: "Copy the whole database to a new file while it is in use. The copy is checked and readable for its owner alone.",
        unsupported_params: &[],
        errors: &[Code::Conflict],
        mutates: true,
        waits: true,
        params: schema::<p::BackupParams>,
        names: field_names::<p::BackupParams>,
        reply: schema::<p::BackupReply>,
    },
    MethodRow {
        name: "daemon.check",
        summary: "Read the whole database to see whether it is sound.",
        unsupported_params: &[],
        errors: &[],
        mutates: false,
        waits: true,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: schema::<p::CheckReply>,
    },
    MethodRow {
        name: "daemon.shutdown",
        summary: "Stop the daemon. Sessions are kept; interrupted turns go on after the next start.",
        unsupported_params: &[],
        errors: &[],
        mutates: true,
        waits: true,
        params: schema::<p::ShutdownParams>,
        names: field_names::<p::ShutdownParams>,
        reply: schema::<p::Done>,
    },
];
