//! The methods about models and workspaces.

use super::fault::Code;
use super::field_names::field_names;
use super::method::{MethodRow, schema};
use super::params as p;

/// Rows of the table of methods, in the order of the reference.
pub(super) const WORKSPACE_METHODS: &[MethodRow] = &[
    MethodRow {
        name: "model.list",
        summary: "Models to choose from, with what is known of them: capabilities, prices and where those come from. \
                  What is not known is null.",
        unsupported_params: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::ModelListParams>,
        names: field_names::<p::ModelListParams>,
        reply: schema::<p::ModelListReply>,
    },
    MethodRow {
        name: "model.check",
        summary: "Try the address and the key of each provider, in parallel and for at most 10 seconds. It spends no tokens.",
        unsupported_params: &[],
        errors: &[Code::InvalidParams],
        mutates: false,
        waits: true,
        params: schema::<p::ModelCheckParams>,
        names: field_names::<p::ModelCheckParams>,
        reply: schema::<p::ModelCheckReply>,
    },
    MethodRow {
        name: "model.usage",
        summary: "The cost ledger: tokens, calls and money by session and model, with the sum. Deleted sessions stay in it.",
        unsupported_params: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::ModelUsageParams>,
        names: field_names::<p::ModelUsageParams>,
        reply: schema::<p::ModelUsageReply>,
    },
    MethodRow {
        name: "workspace.status",
        summary: "What of a folder hangs on its user's trust, and whether it is trusted as it is now.",
        unsupported_params: &[],
        errors: &[],
        mutates: false,
        waits: false,
        params: schema::<p::WorkspaceParams>,
        names: field_names::<p::WorkspaceParams>,
        reply: schema::<p::WorkspaceReply>,
    },
    MethodRow {
        name: "workspace.trust",
        summary: "Trust a folder as workspace.status showed it, or as it is. A change of what was trusted ends that.",
        unsupported_params: &[],
        errors: &[Code::Conflict, Code::StalePrecondition, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::TrustParams>,
        names: field_names::<p::TrustParams>,
        reply: schema::<p::WorkspaceReply>,
    },
    MethodRow {
        name: "workspace.untrust",
        summary: "Take the trust in a folder back.",
        unsupported_params: &[],
        errors: &[Code::Conflict, Code::StorageReadOnly],
        mutates: true,
        waits: false,
        params: schema::<p::UntrustParams>,
        names: field_names::<p::UntrustParams>,
        reply: schema::<p::WorkspaceReply>,
    },
];
