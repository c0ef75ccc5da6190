//! The methods about workspaces and their trust.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// What of a folder hangs on its user's trust, and whether it is trusted as it is now.
    Status = "workspace.status", p::WorkspaceParams => types::trust::TrustStatus, READS;
    /// Every rule, hook, agent and server restriction in force in a folder, and each one that could not be read.
    Restrictions = "workspace.restrictions", p::RestrictionsParams => types::restriction::Restrictions, READS;
    /// Trust a folder as workspace.status showed it, or as it is. A change of what was trusted ends that.
    Trust = "workspace.trust", p::TrustParams => types::trust::TrustStatus,
        CHANGES.errors(&[Code::Conflict, Code::StalePrecondition, Code::StorageReadOnly]);
    /// Take the trust in a folder back.
    Untrust = "workspace.untrust", p::UntrustParams => types::trust::TrustStatus,
        CHANGES.errors(&[Code::Conflict, Code::StorageReadOnly]);
}
