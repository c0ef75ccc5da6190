//! The methods about permissions.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::fault::Code;
use super::field_names::field_names;
use super::method::MethodRow;
use super::params as p;

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn subscription_id(_: &mut SchemaGenerator) -> Value {
    json!({"type": "string", "description": "the subscription"})
}

/// In the order of the reference.
pub(super) const PERMISSION_METHODS: &[MethodRow] = &[
    MethodRow {
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
    MethodRow {
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
    MethodRow {
        name: "permission.respond",
        summary: "The same as session.approve.",
        unbuilt: &[],
        errors: &[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::ApproveParams>,
        names: field_names::<p::ApproveParams>,
        reply: schema::<p::ApproveReply>,
    },
    MethodRow {
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
    MethodRow {
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
    MethodRow {
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
    MethodRow {
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
    MethodRow {
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
    MethodRow {
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
