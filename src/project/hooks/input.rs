//! The JSON that a hook gets on standard input.

use serde_json::{Map, Value, json};

use super::HookForm;
use types::hook::HookEvent;

/// The event, for a hook.
#[derive(Clone, Debug)]
pub struct HookInput {
    /// The event.
    pub event: HookEvent,
    /// The session.
    pub session_id: String,
    /// Its folder.
    pub cwd: String,
    /// The approval mode.
    pub mode: &'static str,
    /// The tool of the call.
    pub tool: Option<String>,
    /// Other names of the tool that a matcher may have: those that an MCP server has for itself and its tool.
    pub tool_aliases: Vec<String>,
    /// The arguments of the call.
    pub input: Option<Value>,
    /// The result of the call.
    pub output: Option<Value>,
    /// The user's input.
    pub prompt: Option<String>,
    /// The text of a notification, or the last text of the turn.
    pub message: Option<String>,
    /// The reason of the event: how a session started, or the trigger of a summary.
    pub source: Option<String>,
    /// A hook has already made this turn continue.
    pub is_continued: bool,
}

impl HookInput {
    /// An event of a session without further parts.
    #[must_use]
    pub fn new(event: HookEvent, session_id: String, cwd: String, mode: &'static str) -> Self {
        Self {
            event,
            session_id,
            cwd,
            mode,
            tool: None,
            tool_aliases: Vec::new(),
            input: None,
            output: None,
            prompt: None,
            message: None,
            source: None,
            is_continued: false,
        }
    }

    /// The JSON in this form.
    #[must_use]
    pub fn to_json(&self, form: HookForm) -> Value {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.into(), value);
            }
        };
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let ends = matches!(self.event, HookEvent::Stop | HookEvent::SubagentStop);
        set("session_id", Some(json!(self.session_id)));
        set("cwd", Some(json!(self.cwd)));
        set("prompt", text(&self.prompt));
        set("message", text(&self.message));
        match form {
            HookForm::Own => {
                set("event", Some(json!(self.event.name())));
                set("mode", Some(json!(self.mode)));
                set("tool", text(&self.tool));
                set("input", self.input.clone());
                set("output", self.output.clone());
                set("source", text(&self.source));
                set("stop_hook_active", ends.then(|| json!(self.is_continued)));
            }
            HookForm::Claude => {
                let source = if self.event == HookEvent::PreCompact { "trigger" } else { "source" };
                set("hook_event_name", Some(json!(self.event.claude_name())));
                // The journal is in a database, so there is no file with it.
                set("transcript_path", Some(json!("")));
                set("permission_mode", Some(json!(claude_mode(self.mode))));
                set("tool_name", text(&self.tool));
                set("tool_input", self.input.clone());
                set("tool_response", self.output.clone());
                set(source, text(&self.source));
                set("stop_hook_active", ends.then(|| json!(self.is_continued)));
            }
        }
        Value::Object(fields)
    }
}

/// Claude Code's name of an approval mode.
fn claude_mode(mode: &str) -> &str {
    match mode {
        "accept_edits" => "acceptEdits",
        "dont_ask" => "dontAsk",
        "bypass" => "bypassPermissions",
        other => other,
    }
}
