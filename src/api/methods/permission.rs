//! The methods about permission requests, rules and the audit log.

use super::{CHANGES, READS, methods};
use crate::PERMISSION_EVENT;
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Returns the pending permission requests of one session or of all.
    List = "permission.list", p::PermissionListParams => p::PermissionListReply,
        READS.errors(&[Code::NotFound]);
    /// Judges a call by just the given rules and returns the verdict. Nothing runs.
    Explain = "permission.explain", types::permission::ExplainParams => p::ExplainReply, READS;
    /// Does the same as `session.approve`.
    Respond = "permission.respond", p::ApproveParams => p::ApproveReply,
        CHANGES.alias_of("session.approve").errors(&[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly]);
    /// Follows the permission requests of all sessions and returns the id of the subscription. First come the pending
    /// requests, then every new request and its end, as `permission.event` notifications with the session's event.
    /// `session.unsubscribe` ends the subscription.
    Subscribe = "permission.subscribe", p::NoParams => p::SubscriptionId,
        READS.notifies(&[PERMISSION_EVENT]).errors(&[Code::Overloaded]);
    /// Returns the permission rules with their origins.
    Rules = "permission.rules", p::RulesParams => p::RulesReply, READS.errors(&[Code::NotFound]);
    /// Adds a rule for a session, for a folder, or for everything, and returns whether that changed anything. The next
    /// verdict uses the rule, also in running sessions.
    AddRule = "permission.add_rule", types::permission::RuleParams => p::RuleReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Removes a rule or a grant and returns whether that changed anything. The next verdict does not use it.
    RemoveRule = "permission.remove_rule", types::permission::RuleParams => p::RuleReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Returns a page of the audit log, oldest first: each decision with its author and its rule.
    Audit = "permission.audit", p::AuditParams => p::AuditReply, READS;
    /// Reads the whole audit log and returns its faults: rows that were changed, removed, inserted or moved.
    VerifyAudit = "permission.verify_audit", p::VerifyAuditParams => p::VerifyAuditReply, READS.waits();
}
