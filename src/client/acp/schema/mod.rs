//! The types of the protocol that this program uses. Fields that it ignores are absent.
//!
//! Their serialised form is that of version 1; `v2` writes those that version 2 shows otherwise.

pub(super) mod v2;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::wire::AcpError;
use types::ids::CallId;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    #[default]
    V1,
    /// A preview: its forms may change.
    V2,
}

impl Version {
    pub(super) fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// A value in the form of the connection's version.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Versioned<T> {
    V1(T),
    V2(Value),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct InitializeParams {
    pub(super) protocol_version: Value,
    pub(super) client_info: Option<Value>,
    pub(super) client_capabilities: Value,
    /// Of version 2, as `capabilities`.
    pub(super) info: Option<Value>,
    pub(super) capabilities: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSessionParams {
    pub(super) cwd: String,
    #[serde(default)]
    pub(super) additional_directories: Option<Vec<String>>,
    #[serde(default)]
    pub(super) mcp_servers: Option<Vec<Value>>,
}

/// `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenSessionParams {
    pub(super) session_id: String,
    #[serde(flatten)]
    pub(super) place: NewSessionParams,
}

/// `session/cancel`, `session/delete` and `session/close`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionParams {
    pub(super) session_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListSessionsParams {
    pub(super) cwd: Option<String>,
    pub(super) cursor: Option<String>,
}

/// `session/prompt` and `_session/steering`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptParams {
    pub(super) session_id: String,
    pub(super) prompt: Vec<Value>,
    /// Only in version 2.
    #[serde(default)]
    pub(super) idempotency_key: Value,
    #[serde(rename = "_meta", default)]
    pub(super) meta: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetModeParams {
    pub(super) session_id: String,
    pub(super) mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetOptionParams {
    pub(super) session_id: String,
    pub(super) config_id: String,
    pub(super) value: Value,
    /// The type of the value; always given in version 2.
    #[serde(rename = "type", default)]
    pub(super) value_type: Value,
}

/// `tool_call/cancel`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelCallParams {
    pub(super) session_id: String,
    pub(super) tool_call_id: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSessionReply<'a> {
    pub(super) session_id: &'a str,
    #[serde(flatten)]
    pub(super) settings: Versioned<SessionSettings>,
}

/// The modes and options of a session: the reply of `session/load` and `session/resume`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionSettings {
    pub(super) modes: ModeState,
    pub(super) config_options: Vec<ConfigOption>,
}

impl SessionSettings {
    pub(super) fn written(self, version: Version) -> Versioned<Self> {
        match version {
            Version::V1 => Versioned::V1(self),
            Version::V2 => Versioned::V2(v2::settings(&self.config_options)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModeState {
    pub(super) current_mode_id: String,
    pub(super) available_modes: Vec<NamedChoice>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct NamedChoice {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigOption {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) category: &'static str,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) current_value: String,
    pub(super) options: Vec<ConfigValue>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ConfigValue {
    pub(super) value: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
}

/// A change that the editor shows.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum SessionUpdate {
    UserMessageChunk(Chunk),
    AgentMessageChunk(Chunk),
    AgentThoughtChunk(Chunk),
    ToolCall(ToolCall),
    ToolCallUpdate(ToolCall),
    Plan {
        entries: Vec<PlanEntry>,
    },
    AvailableCommandsUpdate {
        available_commands: Vec<AvailableCommand>,
    },
    CurrentModeUpdate {
        current_mode_id: String,
    },
    ConfigOptionUpdate {
        config_options: Vec<ConfigOption>,
    },
    SessionInfoUpdate {
        title: String,
        updated_at: String,
    },
    UsageUpdate {
        used: u64,
        size: u64,
        cost: Option<Cost>,
    },
    /// In version 1 only with the client's capability `session.notices`.
    Notice {
        severity: &'static str,
        title: String,
        description: Option<String>,
    },
    /// In version 1 only with the client's capability `session.compaction`.
    CompactionUpdate {
        compaction_id: String,
        status: &'static str,
        error: Option<String>,
    },
    /// Replaces the content of a message that the editor shows. Only in version 2.
    AgentMessage {
        message_id: String,
        content: Vec<TextBlock>,
    },
    /// Only in version 2.
    StateUpdate(Activity),
    /// The end of a history. Only in version 2.
    ReplayComplete,
}

/// What the session does.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Activity {
    Running,
    /// It waits for the user.
    RequiresAction,
    Idle {
        stop_reason: Option<&'static str>,
        /// With the reason `error`.
        error: Option<AcpError>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk {
    pub(super) content: TextBlock,
    pub(super) message_id: String,
}

/// A content block with text, the only kind that this program sends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TextBlock {
    #[serde(rename = "type")]
    kind: &'static str,
    pub(super) text: String,
}

impl TextBlock {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { kind: "text", text: text.into() }
    }
}

/// A tool call, or what changes in one. Absent fields are unchanged; lists are complete.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall {
    pub(super) tool_call_id: String,
    pub(super) title: Option<String>,
    pub(super) name: Option<String>,
    pub(super) kind: Option<ToolKind>,
    pub(super) status: Option<CallState>,
    pub(super) content: Option<Vec<CallContent>>,
    pub(super) locations: Option<Vec<Location>>,
    pub(super) raw_input: Option<Value>,
    pub(super) raw_output: Option<Value>,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<TerminalMeta>,
}

impl ToolCall {
    pub(super) fn for_call(call_id: CallId) -> Self {
        Self { tool_call_id: call_id.to_string(), ..Self::default() }
    }
}

/// The output of a command for clients with the extension `terminal_output`: the client shows a terminal that this
/// program fills.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct TerminalMeta {
    pub(super) terminal_info: Option<Value>,
    pub(super) terminal_output: Option<Value>,
    pub(super) terminal_exit: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallState {
    Pending,
    InProgress,
    Completed,
    Failed,
    /// Version 1 has no such state.
    #[serde(rename = "failed")]
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum CallContent {
    Content {
        content: TextBlock,
    },
    Diff {
        path: String,
        /// `null` for a new file.
        old_text: Option<String>,
        new_text: String,
        /// With the first part of a file.
        #[serde(skip)]
        change: Option<FileChange>,
    },
    Terminal {
        terminal_id: String,
    },
}

/// The change of a whole file, which version 2 shows in place of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileChange {
    /// `add`, `delete` or `modify`.
    pub(super) operation: &'static str,
    /// In git's form; `None` if it is not complete.
    pub(super) patch: Option<String>,
}

impl CallContent {
    pub(super) fn text(text: impl Into<String>) -> Self {
        CallContent::Content { content: TextBlock::new(text) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Location {
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PlanEntry {
    pub(super) content: String,
    pub(super) priority: &'static str,
    pub(super) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct AvailableCommand {
    pub(super) name: String,
    pub(super) description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<CommandInput>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CommandInput {
    pub(super) hint: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Cost {
    pub(super) amount: f64,
    pub(super) currency: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionParams {
    pub(super) session_id: String,
    pub(super) tool_call: ToolCall,
    pub(super) options: Vec<PermissionOption>,
    /// Why the user is asked. Version 1 shows it as content of the call.
    #[serde(skip)]
    pub(super) reason: Option<String>,
    /// Whether `tool_call` is a call of the session. Version 1 needs a call for every request.
    #[serde(skip)]
    pub(super) is_about_call: bool,
}

impl PermissionParams {
    pub(super) fn written(mut self, version: Version) -> Versioned<Self> {
        if version == Version::V2 {
            return Versioned::V2(v2::permission(&self));
        }
        if let Some(reason) = self.reason.take() {
            self.tool_call.content.get_or_insert_default().push(CallContent::text(reason));
        }
        Versioned::V1(self)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    pub(super) name: String,
    pub(super) kind: OptionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
}

/// The chosen option in the reply to `session/request_permission`; `None` for anything else.
pub(super) fn chosen_option(reply: Option<&Value>) -> Option<&str> {
    let outcome = &reply?["outcome"];
    (outcome["outcome"] == "selected").then(|| outcome["optionId"].as_str()).flatten()
}
