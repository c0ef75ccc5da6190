//! Parameters and replies of `workspace.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `workspace.untrust`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UntrustParams {
    /// The folder, absolute.
    pub cwd: String,
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `workspace.status`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceParams {
    /// The folder, absolute.
    pub cwd: String,
    /// Whether the reply counts the changed files. Git runs only in a trusted folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count_changes: bool,
}

/// `workspace.restrictions`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RestrictionsParams {
    /// The folder, absolute.
    pub cwd: String,
}

/// `workspace.trust`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TrustParams {
    /// The folder, absolute.
    pub cwd: String,
    /// The digest from `workspace.status`: content that changed since is not trusted. Without it, the current
    /// content is trusted.
    pub digest: Option<String>,
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    pub idempotency_key: Option<String>,
}
