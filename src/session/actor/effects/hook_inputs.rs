//! The input of hooks about calls: with absolute paths, and with the files of a patch.

use std::path::Path;

use serde_json::{Value, json};

use crate::call_context::CallContext;
use crate::hooks::HookedEvent;
use project::hooks::{CallInput, CallOutput, CallTarget, HookInput};
use tools::PatchedFile;
use types::hook::HookEvent;
use types::message::ToolCall;
use types::tool::{Subject, ToolOutcome};

/// The argument with the path, of each tool that has one.
const PATH_ARGUMENTS: [(&str, &str); 8] = [
    ("Read", "file_path"),
    ("Write", "file_path"),
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("NotebookEdit", "notebook_path"),
    ("Glob", "path"),
    ("Grep", "path"),
    ("LS", "path"),
];

/// A call that hooks are about.
pub(super) struct HookedCall<'c> {
    pub call: &'c ToolCall,
    pub subject: &'c Subject,
    pub files: &'c [PatchedFile],
    pub context: &'c CallContext,
    pub home: &'c Path,
}

impl<'c> HookedCall<'c> {
    /// The event for the hooks. `outcome` is the result of a call that ran.
    pub fn event(&self, event: HookEvent, outcome: Option<&ToolOutcome>) -> HookedEvent<'c> {
        let Self { call, subject, files, .. } = *self;
        let input = absolute_input(call, subject);
        let output = outcome.map(|outcome| CallOutput {
            status: json!(outcome.status).as_str().unwrap_or_default().to_owned(),
            text: outcome.output.clone(),
            detail: outcome.detail.clone(),
        });
        let original = || Some((call.tool.clone(), call.input.clone()));
        let about = |tool: &str, input: Value, original| {
            let session = &self.context.session_context;
            let cwd = session.workspace.to_string_lossy().into_owned();
            let (call_id, output) = (call.call_id.to_string(), output.clone());
            HookInput {
                call: Some(CallInput { call_id, tool: tool.to_owned(), input, original, output }),
                ..HookInput::new(event, session.session_id.to_string(), cwd, self.context.mode.name())
            }
        };
        let file = |file: &'c PatchedFile| {
            (about(file.tool, file.input.clone(), original()), self.target(file.tool, &file.subject))
        };
        let original_of_call = original().filter(|_| input != call.input);
        HookedEvent {
            input: about(&call.tool, input, original_of_call),
            target: Some(self.target(&call.tool, subject)),
            files: files.iter().map(file).collect(),
        }
    }

    fn target(&self, tool: &'c str, subject: &'c Subject) -> CallTarget<'c> {
        CallTarget { tool, subject, workspace: &self.context.session_context.workspace, home: self.home }
    }
}

/// The arguments of a call with its path absolute and resolved, so that a hook sees the file that the call reaches.
pub(super) fn absolute_input(call: &ToolCall, subject: &Subject) -> Value {
    let mut input = call.input.clone();
    let (Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path }) = subject else {
        return input;
    };
    let argument = PATH_ARGUMENTS.iter().find(|(tool, _)| *tool == call.tool).map(|(_, argument)| *argument);
    if let Some(argument) = argument
        && let Some(fields) = input.as_object_mut()
        && fields.get(argument).is_some_and(|path| !path.is_null())
    {
        fields.insert(argument.to_owned(), json!(path.path.to_string_lossy()));
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::tool::{PathSensitivity, ResolvedPath};

    #[test]
    fn paths_of_every_file_tool_are_absolute() {
        let path = ResolvedPath {
            path: "/w/.env".into(),
            in_workspace: true,
            sensitivity: PathSensitivity::Ordinary,
            matched_aliases: Vec::new(),
        };
        let (read, edit) = (Subject::Read { path: path.clone() }, Subject::Edit { path });
        for (tool, argument, subject) in [
            ("Read", "file_path", &read),
            ("Write", "file_path", &edit),
            ("Edit", "file_path", &edit),
            ("MultiEdit", "file_path", &edit),
            ("NotebookEdit", "notebook_path", &edit),
            ("Glob", "path", &read),
            ("Grep", "path", &read),
            ("LS", "path", &read),
        ] {
            let call =
                ToolCall { tool: tool.into(), input: json!({argument: "src/../.env", "x": 1}), ..call() };
            assert_eq!(absolute_input(&call, subject), json!({argument: "/w/.env", "x": 1}), "{tool}");
        }
        let glob = ToolCall { tool: "Glob".into(), input: json!({"pattern": "*"}), ..call() };
        assert_eq!(absolute_input(&glob, &read), glob.input);
        let bash = ToolCall { tool: "Bash".into(), input: json!({"command": "ls"}), ..call() };
        assert_eq!(absolute_input(&bash, &Subject::command("ls")), bash.input);
    }

    fn call() -> ToolCall {
        ToolCall {
            call_id: types::ids::CallId::from_uuid(uuid::Uuid::nil()),
            provider_id: String::new(),
            tool: String::new(),
            input: Value::Null,
            input_error: None,
        }
    }
}
