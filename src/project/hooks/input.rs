//! The JSON that a hook gets on standard input.

use serde_json::{Map, Value, json};

use super::HookForm;
use types::hook::HookEvent;

/// The call that a hook is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallInput {
    /// The call's id.
    pub call_id: String,
    /// The tool. For a file of a patch it is `Write` or `Edit`.
    pub tool: String,
    /// The arguments, with absolute paths.
    pub input: Value,
    /// The tool and the arguments as the model wrote them, if they differ.
    pub original: Option<(String, Value)>,
    /// The result of the call.
    pub output: Option<CallOutput>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOutput {
    /// Name of its status.
    pub status: String,
    /// The text for the model.
    pub text: String,
    /// The details for clients.
    pub detail: Option<Value>,
}

/// The event, for a hook.
#[derive(Clone, Debug)]
pub struct HookInput {
    pub event: HookEvent,
    pub session_id: String,
    /// Its folder.
    pub cwd: String,
    /// The approval mode.
    pub mode: &'static str,
    pub call: Option<CallInput>,
    /// The user's input.
    pub prompt: Option<String>,
    /// The text of a notification, or the last text of the turn.
    pub message: Option<String>,
    /// The kind of the event: how a session started, the trigger of a summary, or the kind of a notification.
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
            call: None,
            prompt: None,
            message: None,
            source: None,
            is_continued: false,
        }
    }

    /// The name that matchers select: the tool, or the kind of the event.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.call {
            Some(call) => Some(&call.tool),
            None => self.source.as_deref(),
        }
    }

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
        set("stop_hook_active", ends.then(|| json!(self.is_continued)));
        let call = self.call.as_ref();
        let original = call.and_then(|call| call.original.as_ref());
        set("original_tool", original.map(|(tool, _)| json!(tool)));
        set("original_input", original.map(|(_, input)| input.clone()));
        match form {
            HookForm::Own => {
                set("event", Some(json!(self.event.name())));
                set("mode", Some(json!(self.mode)));
                set("call_id", call.map(|call| json!(call.call_id)));
                set("tool", call.map(|call| json!(call.tool)));
                set("input", call.map(|call| call.input.clone()));
                set("output", call.and_then(|call| call.output.as_ref()).map(CallOutput::to_own));
                set("source", text(&self.source));
            }
            HookForm::Claude => {
                set("hook_event_name", Some(json!(self.event.claude_name())));
                // The journal is in a database, so there is no file with it.
                set("transcript_path", Some(json!("")));
                set("permission_mode", Some(json!(claude_mode(self.mode))));
                set("tool_use_id", call.map(|call| json!(call.call_id)));
                set("tool_name", call.map(|call| json!(call.tool)));
                set("tool_input", call.map(|call| call.input.clone()));
                set("tool_response", call.and_then(CallInput::claude_response));
                set(source_name(self.event), text(&self.source));
                if ends {
                    set("last_assistant_message", text(&self.message));
                }
                if self.event == HookEvent::PreCompact {
                    set("custom_instructions", Some(json!(self.message.as_deref().unwrap_or_default())));
                }
            }
        }
        Value::Object(fields)
    }
}

impl CallOutput {
    fn to_own(&self) -> Value {
        json!({ "status": self.status, "output": self.text, "detail": self.detail })
    }
}

impl CallInput {
    /// The result as an object. Besides the daemon's own fields it has those that Claude Code gives for the tool.
    fn claude_response(&self) -> Option<Value> {
        let output = self.output.as_ref()?;
        let is_success = output.status == "completed";
        let mut fields = match output.detail.clone() {
            Some(Value::Object(fields)) => fields,
            Some(detail) => Map::from_iter([("detail".to_owned(), detail)]),
            None => Map::new(),
        };
        let mut set = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
        set("status", json!(output.status));
        set("output", json!(output.text));
        set("success", json!(is_success));
        match self.tool.as_str() {
            // A command's output keeps the order of its writes, so both streams are in one text.
            "Bash" => {
                set("stdout", json!(output.text));
                set("stderr", json!(""));
                set("interrupted", json!(output.status == "cancelled"));
                set("isImage", json!(false));
            }
            "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
                let path = ["file_path", "notebook_path"].iter().find_map(|name| self.input.get(name));
                set("filePath", path.cloned().unwrap_or_default());
            }
            _ => {}
        }
        Some(Value::Object(fields))
    }
}

/// The field with the kind of an event.
fn source_name(event: HookEvent) -> &'static str {
    match event {
        HookEvent::PreCompact => "trigger",
        HookEvent::Notification => "notification_type",
        HookEvent::SubagentStop => "agent_type",
        _ => "source",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_a_command_has_the_fields_of_claude_code() {
        let output = CallOutput {
            status: "completed".into(),
            text: "hello".into(),
            detail: Some(json!({"exit_code": 0})),
        };
        let call = CallInput {
            call_id: "call_1".into(),
            tool: "Bash".into(),
            input: json!({"command": "echo hello"}),
            output: Some(output),
            ..CallInput::default()
        };
        let input = HookInput {
            call: Some(call),
            ..HookInput::new(HookEvent::PostToolUse, "ses_1".into(), "/w".into(), "accept_edits")
        };
        let claude = input.to_json(HookForm::Claude);
        let response = &claude["tool_response"];
        assert_eq!((&response["stdout"], &response["stderr"]), (&json!("hello"), &json!("")), "{claude}");
        assert_eq!(
            (&response["interrupted"], &response["exit_code"]),
            (&json!(false), &json!(0)),
            "{claude}"
        );
        assert_eq!(
            (&claude["tool_use_id"], &claude["permission_mode"]),
            (&json!("call_1"), &json!("acceptEdits"))
        );
        let own = input.to_json(HookForm::Own);
        assert_eq!(own["output"]["output"], "hello", "{own}");
        assert_eq!((&own["tool"], &own["event"]), (&json!("Bash"), &json!("post_tool_use")), "{own}");
    }

    #[test]
    fn kinds_of_events_have_the_names_of_claude_code() {
        for (event, field) in [
            (HookEvent::SessionStart, "source"),
            (HookEvent::PreCompact, "trigger"),
            (HookEvent::Notification, "notification_type"),
        ] {
            let new = HookInput::new(event, String::new(), String::new(), "default");
            let input = HookInput { source: Some("auto".into()), ..new };
            assert_eq!(input.to_json(HookForm::Claude)[field], "auto", "{event:?}");
            assert_eq!(input.name(), Some("auto"));
        }
    }
}
