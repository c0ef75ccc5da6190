//! The methods about workspaces and their trust.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Returns the parts of a folder that need trust, and whether the folder is trusted in its present state.
    Status = "workspace.status", p::WorkspaceParams => types::trust::TrustStatus, READS;
    /// Returns every rule, hook, agent and server restriction that is in force in a folder, and each one that could not
    /// be read.
    Restrictions = "workspace.restrictions", p::RestrictionsParams => types::restriction::Restrictions, READS;
    /// Trusts a folder in the state that `workspace.status` showed, or in its present state, and returns its trust. A
    /// later change of the trusted parts ends the trust.
    Trust = "workspace.trust", p::TrustParams => types::trust::TrustStatus,
        CHANGES.errors(&[Code::Conflict, Code::StalePrecondition, Code::StorageReadOnly]);
    /// Ends the trust in a folder and returns its trust.
    Untrust = "workspace.untrust", p::UntrustParams => types::trust::TrustStatus,
        CHANGES.errors(&[Code::Conflict, Code::StorageReadOnly]);
}
