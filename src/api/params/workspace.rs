//! Parameters and replies of `workspace.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `workspace.untrust`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UntrustParams {
    /// The folder, absolute.
    pub cwd: String,
    /// The same key with the same parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `workspace.status`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceParams {
    /// The folder, absolute.
    pub cwd: String,
}

/// `workspace.trust`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TrustParams {
    /// The folder, absolute.
    pub cwd: String,
    /// As `workspace.status` told it: what has changed since is not trusted. Without it the folder is trusted as it is
    /// now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The same key with the same parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `workspace.status`, `workspace.trust` and `workspace.untrust`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceReply {
    /// The folder, absolute and free of links.
    pub cwd: String,
    /// Whether it is trusted as it is now.
    pub trusted: bool,
    /// Of all that trust covers: another content is another digest. Empty of a folder that is gone.
    pub digest: String,
    /// What is active with trust, for people; empty: nothing needs any.
    pub parts: Vec<String>,
}
