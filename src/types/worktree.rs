//! Git worktrees of jobs and sessions.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ids::{JobId, SessionId};
use super::time::Timestamp;

/// What a worktree is made from: `true`, or an object with these keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeChoice {
    /// The commit or branch that it starts from; by default `HEAD`.
    pub base: Option<String>,
    /// Its branch; by default `agentd/ID`.
    pub branch: Option<String>,
    /// Whether it is kept at the end.
    pub keep: KeepWorktree,
    /// Ignored files that are copied into it: paths or globs relative to the top of the repository.
    pub include: Vec<String>,
    /// Whether uncommitted changes are committed at the end.
    pub commit: bool,
}

/// When a worktree is kept at the end of its job. The branch always stays if it has a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepWorktree {
    /// If there is a change.
    #[default]
    Changed,
    /// In any case.
    Always,
    /// Not; changes that are not committed keep it all the same.
    Never,
}

/// The object form of [`WorktreeChoice`].
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct WorktreeObject {
    /// The commit or branch that the worktree starts from; by default `HEAD`.
    base: Option<String>,
    /// Its branch; by default `agentd/ID`.
    branch: Option<String>,
    /// Whether it is kept at the end.
    keep: KeepWorktree,
    /// Ignored files that are copied into it: paths or globs relative to the top of the repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<String>,
    /// Whether uncommitted changes are committed at the end; `true` by default.
    commit: Option<bool>,
}

/// Both forms. `false` is the same as leaving it out, which callers that fill in a form expect.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum WorktreeForm {
    /// A worktree with the defaults.
    Switch(bool),
    /// A worktree with these values.
    Object(WorktreeObject),
}

impl WorktreeChoice {
    /// A worktree with the defaults.
    #[must_use]
    pub fn with_defaults() -> Self {
        Self { commit: true, ..Self::default() }
    }
}

/// Reads an optional worktree: `false` and `null` are none.
///
/// # Errors
/// The value is neither a boolean nor an object with known keys.
pub fn optional_worktree<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WorktreeChoice>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(from)?;
    match value {
        None | Some(serde_json::Value::Bool(false)) => Ok(None),
        Some(value) => serde_json::from_value(value).map(Some).map_err(serde::de::Error::custom),
    }
}

impl<'de> Deserialize<'de> for WorktreeChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(from)?;
        match value {
            serde_json::Value::Bool(true) => Ok(Self::with_defaults()),
            serde_json::Value::Object(members) => {
                const KEYS: [&str; 5] = ["base", "branch", "keep", "include", "commit"];
                if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
                    let known = KEYS.join(", ");
                    return Err(serde::de::Error::custom(format!(
                        "unknown field `{key}`, expected one of {known}"
                    )));
                }
                let object: WorktreeObject =
                    serde_json::from_value(members.into()).map_err(serde::de::Error::custom)?;
                Ok(Self {
                    base: object.base,
                    branch: object.branch,
                    keep: object.keep,
                    include: object.include,
                    commit: object.commit.unwrap_or(true),
                })
            }
            other => Err(serde::de::Error::custom(format!("expected true or an object, got {other}"))),
        }
    }
}

impl Serialize for WorktreeChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = WorktreeObject {
            base: self.base.clone(),
            branch: self.branch.clone(),
            keep: self.keep,
            include: self.include.clone(),
            commit: Some(self.commit),
        };
        object.serialize(serializer)
    }
}

impl JsonSchema for WorktreeChoice {
    fn schema_name() -> Cow<'static, str> {
        "WorktreeChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WorktreeForm::json_schema(generator)
    }
}

/// What a job or session left in its branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitResult {
    /// The branch of the worktree.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// The newest commit of the branch; absent if it has none of its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
    /// Number of changed files, from `base` to the branch.
    pub files_changed: u64,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Uncommitted changes of the main folder, which the worktree did not take over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncommitted_in_base: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The worktree that a session works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionWorktree {
    /// Its folder, absolute.
    pub path: String,
    /// The folder that it was made for. The rules of this folder hold in the worktree.
    pub base_folder: String,
    /// Its branch.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// For a fork: the session with which it shares the worktree. The worktree stays until both have ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shared_with: Option<SessionId>,
}

/// A worktree that the daemon made.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worktree {
    /// The job that it belongs to.
    pub job_id: Option<JobId>,
    /// The session that works in it; absent before its start.
    pub session_id: Option<SessionId>,
    /// Its folder, absolute.
    pub path: String,
    /// The top of the repository that it belongs to.
    pub repository: String,
    /// Its branch.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// Time of its creation.
    pub created_at_ms: Timestamp,
    /// Whether it has changes that are not committed; absent if it was not looked at.
    pub uncommitted: Option<bool>,
    /// Commits of the branch that the base does not have; absent if it was not looked at.
    pub commits: Option<u64>,
    /// Whether a session or a job still uses it.
    #[serde(default)]
    pub in_use: bool,
}
