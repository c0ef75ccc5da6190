//! The methods about permission requests, rules and the audit log.

use super::{CHANGES, READS, methods};
use crate::PERMISSION_EVENT;
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Pending permission requests, of one session or of all.
    List = "permission.list", p::PermissionListParams => p::PermissionListReply,
        READS.errors(&[Code::NotFound]);
    /// What rules would say of a call: judged from just the rules given, nothing runs.
    Explain = "permission.explain", types::permission::ExplainParams => p::ExplainReply, READS;
    /// The same as session.approve.
    Respond = "permission.respond", p::ApproveParams => p::ApproveReply,
        CHANGES.alias_of("session.approve").errors(&[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly]);
    /// Follow the permission requests of all sessions: first those that are pending, then every request and
    /// its end, as `permission.event` notifications that hold the session's event. End it with
    /// session.unsubscribe.
    Subscribe = "permission.subscribe", p::NoParams => p::SubscriptionId,
        READS.notifies(&[PERMISSION_EVENT]).errors(&[Code::Overloaded]);
    /// Permission rules with where they come from.
    Rules = "permission.rules", p::RulesParams => p::RulesReply, READS.errors(&[Code::NotFound]);
    /// Add a rule for a session, a folder, or everywhere. It counts from the next verdict on, also in
    /// sessions that run.
    AddRule = "permission.add_rule", types::permission::RuleParams => p::RuleReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Take a rule or a grant back. That counts from the next verdict on.
    RemoveRule = "permission.remove_rule", types::permission::RuleParams => p::RuleReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// The audit log: every decision, who made it and by which rule, oldest first.
    Audit = "permission.audit", p::AuditParams => p::AuditReply, READS;
    /// Read the whole audit log to see whether a row was changed, left out, put in or moved.
    VerifyAudit = "permission.verify_audit", p::VerifyAuditParams => p::VerifyAuditReply, READS.waits();
}
