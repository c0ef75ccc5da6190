//! The table of methods: `rpc.discover` prints it and the dispatcher serves it.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::fault::Code;
use super::field_names::field_names;
use super::params::{self as p, ClientRole};
use crate::types::metrics::Metrics;

/// One method.
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
    params: fn(&mut SchemaGenerator) -> Value,
    names: fn() -> &'static [&'static str],
    reply: fn(&mut SchemaGenerator) -> Value,
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

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn subscription_id(_: &mut SchemaGenerator) -> Value {
    json!({"type": "string", "description": "the subscription"})
}

fn any_object(_: &mut SchemaGenerator) -> Value {
    json!({"type": "object"})
}

fn truth(_: &mut SchemaGenerator) -> Value {
    json!({"type": "boolean"})
}

/// The method with this name; `None` if there is none.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Every method, in the order of the reference.
pub static METHODS: &[Method] = &[
    Method {
        name: "rpc.discover",
        summary: "The OpenRPC document of this daemon.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: any_object,
    },
    Method {
        name: "daemon.hello",
        summary: "Agree on the protocol version and say who is calling. Optional, but others then see your name.",
        unbuilt: &[],
        errors: &[Code::UnsupportedVersion],
        mutates: false,
        waits: false,
        params: schema::<p::HelloParams>,
        names: field_names::<p::HelloParams>,
        reply: schema::<p::HelloReply>,
    },
    Method {
        name: "daemon.status",
        summary: "Version, places, numbers and the health of the storage.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: schema::<p::StatusReply>,
    },
    Method {
        name: "daemon.metrics",
        summary: "What the daemon has done since it started, in numbers. `GET /metrics` on the socket gives them as text for \
                  Prometheus.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: schema::<Metrics>,
    },
    Method {
        name: "daemon.reload",
        summary: "Read the configuration again. What runs keeps what it began with; a wrong configuration is refused \
                  with its file and line, and the one in force stays.",
        unbuilt: &[],
        errors: &[Code::InvalidParams, Code::Conflict, Code::ShuttingDown],
        mutates: true,
        waits: true,
        params: schema::<p::ReloadParams>,
        names: field_names::<p::ReloadParams>,
        reply: schema::<p::ReloadReply>,
    },
    Method {
        name: "daemon.backup",
        summary: "Copy the whole database to a new file while it is in use. The copy is checked and readable for its owner alone.",
        unbuilt: &[],
        errors: &[Code::Conflict],
        mutates: true,
        waits: true,
        params: schema::<p::BackupParams>,
        names: field_names::<p::BackupParams>,
        reply: schema::<p::BackupReply>,
    },
    Method {
        name: "daemon.check",
        summary: "Read the whole database to see whether it is sound.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: true,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: schema::<p::CheckReply>,
    },
    Method {
        name: "daemon.shutdown",
        summary: "Stop the daemon. Sessions are kept; interrupted turns go on after the next start.",
        unbuilt: &[],
        errors: &[],
        mutates: true,
        waits: true,
        params: schema::<p::ShutdownParams>,
        names: field_names::<p::ShutdownParams>,
        reply: schema::<p::Done>,
    },
    Method {
        name: "session.create",
        summary: "Make a session in a folder.",
        unbuilt: &["agent", "fallback_model", "output_schema", "initial_items", "coordinator", "ablation"],
        errors: &[Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown],
        mutates: true,
        waits: false,
        params: schema::<p::CreateParams>,
        names: field_names::<p::CreateParams>,
        reply: schema::<p::SessionReply>,
    },
    Method {
        name: "session.list",
        summary: "Sessions with their live state, newest first.",
        unbuilt: &["include_children"],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::ListParams>,
        names: field_names::<p::ListParams>,
        reply: schema::<p::ListReply>,
    },
    Method {
        name: "session.get",
        summary: "One session.",
        unbuilt: &[],
        errors: &[Code::NotFound],
        mutates: false,
        waits: false,
        params: schema::<p::SessionParams>,
        names: field_names::<p::SessionParams>,
        reply: schema::<p::SessionReply>,
    },
    Method {
        name: "session.submit",
        summary: "Give the session something to do. The reply means that it is on disk.",
        unbuilt: &[
            "safe_mode",
            "system_prompt",
            "append_system_prompt",
            "additional_dirs",
            "fallback_model",
            "output_schema",
            "raw",
        ],
        errors: &[
            Code::NotFound,
            Code::Conflict,
            Code::StalePrecondition,
            Code::Busy,
            Code::StorageReadOnly,
            Code::ShuttingDown,
        ],
        mutates: true,
        waits: false,
        params: schema::<p::SubmitParams>,
        names: field_names::<p::SubmitParams>,
        reply: schema::<p::SubmitReply>,
    },
    Method {
        name: "session.abort",
        summary: "Stop the running turn, or one tool call. Replies when the work has stopped.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::Conflict, Code::StalePrecondition, Code::StorageReadOnly],
        mutates: true,
        waits: true,
        params: schema::<p::AbortParams>,
        names: field_names::<p::AbortParams>,
        reply: schema::<p::AbortReply>,
    },
    Method {
        name: "session.approve",
        summary: "Answer a permission request, or several. The first answer wins.",
        unbuilt: &["mode"],
        errors: &[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::ApproveParams>,
        names: field_names::<p::ApproveParams>,
        reply: schema::<p::ApproveReply>,
    },
    Method {
        name: "session.update",
        summary: "Change a session's title, model, approval mode, limits, tools or folders, also while a turn runs.",
        unbuilt: &["safe_mode", "system_prompt", "append_system_prompt", "fallback_model", "output_schema"],
        errors: &[Code::NotFound, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::UpdateParams>,
        names: field_names::<p::UpdateParams>,
        reply: schema::<p::SessionReply>,
    },
    Method {
        name: "session.answer",
        summary: "Answer a question: what to do about a call whose outcome is unknown, or whether an interrupted turn goes on. The first answer wins.",
        unbuilt: &["text", "answers"],
        errors: &[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::AnswerParams>,
        names: field_names::<p::AnswerParams>,
        reply: schema::<p::AnswerReply>,
    },
    Method {
        name: "session.kill",
        summary: "Abort what runs and end the session; its history stays readable.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: true,
        params: schema::<p::EndParams>,
        names: field_names::<p::EndParams>,
        reply: schema::<p::AbortReply>,
    },
    Method {
        name: "session.subscribe",
        summary: "Replay what lies after a cursor, then follow live, without a gap or a duplicate.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::CursorAhead, Code::Overloaded],
        mutates: false,
        waits: false,
        params: schema::<p::SubscribeParams>,
        names: field_names::<p::SubscribeParams>,
        reply: subscription_id,
    },
    Method {
        name: "session.unsubscribe",
        summary: "End a subscription; false if there was none.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::UnsubscribeParams>,
        names: field_names::<p::UnsubscribeParams>,
        reply: truth,
    },
    Method {
        name: "session.events",
        summary: "A page of the journal, for clients that poll.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::CursorAhead],
        mutates: false,
        waits: false,
        params: schema::<p::EventsParams>,
        names: field_names::<p::EventsParams>,
        reply: schema::<p::EventsReply>,
    },
    Method {
        name: "session.items",
        summary: "A page of the conversation, oldest first.",
        unbuilt: &[],
        errors: &[Code::NotFound],
        mutates: false,
        waits: false,
        params: schema::<p::ItemsParams>,
        names: field_names::<p::ItemsParams>,
        reply: schema::<p::ItemsReply>,
    },
    Method {
        name: "session.blob",
        summary: "A part of what is too large for an event: of a text that was cut, of a whole tool result, of a picture.",
        unbuilt: &[],
        errors: &[Code::NotFound],
        mutates: false,
        waits: false,
        params: schema::<p::BlobParams>,
        names: field_names::<p::BlobParams>,
        reply: schema::<p::BlobReply>,
    },
    Method {
        name: "session.diff",
        summary: "All the changes of files that the session's file tools made: of each file from before the first to \
                  after the last. What commands (Bash) changed is not in it.",
        unbuilt: &[],
        errors: &[Code::NotFound],
        mutates: false,
        waits: false,
        params: schema::<p::DiffParams>,
        names: field_names::<p::DiffParams>,
        reply: schema::<p::DiffReply>,
    },
    Method {
        name: "session.delete",
        summary: "Abort what runs and remove the session with its history.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::StorageReadOnly],
        mutates: true,
        waits: true,
        params: schema::<p::EndParams>,
        names: field_names::<p::EndParams>,
        reply: schema::<p::Done>,
    },
    Method {
        name: "permission.list",
        summary: "Pending permission requests, of one session or of all.",
        unbuilt: &[],
        errors: &[Code::NotFound],
        mutates: false,
        waits: false,
        params: schema::<p::PermissionListParams>,
        names: field_names::<p::PermissionListParams>,
        reply: schema::<p::PermissionListReply>,
    },
    Method {
        name: "permission.explain",
        summary: "What rules would say of a call: judged from just the rules given, nothing runs.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::ExplainParams>,
        names: field_names::<p::ExplainParams>,
        reply: schema::<p::ExplainReply>,
    },
    Method {
        name: "tool.list",
        summary: "The tools that sessions offer their models, by name: what each does, the JSON Schema of its input, \
                  whether it changes nothing, and whether its calls run beside each other.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::ToolListParams>,
        names: field_names::<p::ToolListParams>,
        reply: schema::<p::ToolListReply>,
    },
    Method {
        name: "model.list",
        summary: "Models to choose from, with what is known of them: capabilities, prices and where those come from. \
                  What is not known is null.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::ModelListParams>,
        names: field_names::<p::ModelListParams>,
        reply: schema::<p::ModelListReply>,
    },
    Method {
        name: "model.usage",
        summary: "The cost ledger: tokens, calls and money by session and model, with the sum. Deleted sessions stay in it.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::ModelUsageParams>,
        names: field_names::<p::ModelUsageParams>,
        reply: schema::<p::ModelUsageReply>,
    },
    Method {
        name: "workspace.status",
        summary: "What of a folder hangs on its user's trust, and whether it is trusted as it is now.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::WorkspaceParams>,
        names: field_names::<p::WorkspaceParams>,
        reply: schema::<p::WorkspaceReply>,
    },
    Method {
        name: "workspace.trust",
        summary: "Trust a folder as workspace.status showed it, or as it is. A change of what was trusted ends that.",
        unbuilt: &[],
        errors: &[Code::Conflict, Code::StalePrecondition, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::TrustParams>,
        names: field_names::<p::TrustParams>,
        reply: schema::<p::WorkspaceReply>,
    },
    Method {
        name: "workspace.untrust",
        summary: "Take the trust in a folder back.",
        unbuilt: &[],
        errors: &[Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::UntrustParams>,
        names: field_names::<p::UntrustParams>,
        reply: schema::<p::WorkspaceReply>,
    },
    Method {
        name: "permission.respond",
        summary: "The same as session.approve.",
        unbuilt: &["mode"],
        errors: &[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::ApproveParams>,
        names: field_names::<p::ApproveParams>,
        reply: schema::<p::ApproveReply>,
    },
    Method {
        name: "permission.subscribe",
        summary: "Follow the permission requests of all sessions: first those that are pending, then every request and \
                  its end, as `permission.event` notifications that hold the session's event. End it with session.unsubscribe.",
        unbuilt: &[],
        errors: &[Code::Overloaded],
        mutates: false,
        waits: false,
        params: schema::<p::NoParams>,
        names: field_names::<p::NoParams>,
        reply: subscription_id,
    },
    Method {
        name: "permission.rules",
        summary: "Permission rules with where they come from.",
        unbuilt: &[],
        errors: &[Code::NotFound],
        mutates: false,
        waits: false,
        params: schema::<p::RulesParams>,
        names: field_names::<p::RulesParams>,
        reply: schema::<p::RulesReply>,
    },
    Method {
        name: "permission.add_rule",
        summary: "Add a rule for a session, a folder, or everywhere. It counts from the next verdict on, also in sessions that run.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::RuleParams>,
        names: field_names::<p::RuleParams>,
        reply: schema::<p::RuleReply>,
    },
    Method {
        name: "permission.remove_rule",
        summary: "Take a rule or a grant back. That counts from the next verdict on.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::RuleParams>,
        names: field_names::<p::RuleParams>,
        reply: schema::<p::RuleReply>,
    },
    Method {
        name: "permission.audit",
        summary: "The audit log: every decision, who made it and by which rule, oldest first.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::AuditParams>,
        names: field_names::<p::AuditParams>,
        reply: schema::<p::AuditReply>,
    },
    Method {
        name: "permission.verify_audit",
        summary: "Read the whole audit log to see whether a row was changed, left out, put in or moved.",
        unbuilt: &[],
        errors: &[],
        mutates: false,
        waits: true,
        params: schema::<p::VerifyAuditParams>,
        names: field_names::<p::VerifyAuditParams>,
        reply: schema::<p::VerifyAuditReply>,
    },
];
