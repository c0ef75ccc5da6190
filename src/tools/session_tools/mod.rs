//! Tools that reach only what belongs to the session itself: its todo list, its questions, its plan.
//!
//! Their calls change nothing in the workspace. Questions and proposed plans never run as a tool: the engine raises
//! them and gives the call its result.

mod todo;

use crate::tools::context::ToolContext;
use crate::tools::error::ToolError;
use crate::tools::input;
use crate::types::message::ToolCall;
use crate::types::tool::{PreparedCall, Subject, ToolDefinition, ToolOutcome};

/// The parsed arguments of a call.
pub(in crate::tools) enum SessionCall {
    TodoWrite(todo::WriteInput),
    TodoRead(todo::ReadInput),
}

/// Parses a call of one of these tools; `None` for any other tool.
pub(in crate::tools) fn parse(call: &ToolCall) -> Result<Option<SessionCall>, ToolError> {
    Ok(Some(match call.tool.as_str() {
        todo::WRITE => SessionCall::TodoWrite(input::parse(call)?),
        todo::READ => SessionCall::TodoRead(input::parse(call)?),
        _ => return Ok(None),
    }))
}

pub(in crate::tools) fn prepare(
    _context: &ToolContext,
    call: &SessionCall,
) -> Result<PreparedCall, ToolError> {
    match call {
        SessionCall::TodoWrite(input) => todo::prepare_write(input),
        SessionCall::TodoRead(_) => Ok(prepared_own(todo::READ, "Read the todo list", true)),
    }
}

pub(in crate::tools) fn run(context: &ToolContext, call: &SessionCall) -> Result<ToolOutcome, ToolError> {
    match call {
        SessionCall::TodoWrite(input) => todo::run_write(input),
        SessionCall::TodoRead(_) => Ok(todo::run_read(&context.session_context.todos)),
    }
}

/// The definitions for models, always in the same order.
pub(in crate::tools) fn cards() -> Vec<ToolDefinition> {
    let card = |name: &str, description: &str, input_schema, read_only| ToolDefinition {
        name: name.into(),
        description: description.into(),
        input_schema,
        read_only,
    };
    vec![
        card(todo::WRITE, todo::WRITE_DESCRIPTION, input::schema::<todo::WriteInput>(), false),
        card(todo::READ, todo::READ_DESCRIPTION, input::schema::<todo::ReadInput>(), true),
    ]
}

/// A call that reaches only the session itself.
fn prepared_own(tool: &str, summary: impl Into<String>, read_only: bool) -> PreparedCall {
    PreparedCall {
        subject: Subject::Session { tool: tool.into() },
        summary: summary.into(),
        diff: None,
        read_only,
        change: None,
        sandbox: None,
    }
}
